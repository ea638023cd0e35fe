#include "plenum/comm/communicator.h"

#include <numeric>

#include <fmt/format.h>

namespace plenum::comm {

Aborted::Aborted(Rank failed_rank, std::string_view reason)
    : std::runtime_error(fmt::format("rank {} failed: {}", failed_rank.value, reason)),
      failed_rank_(failed_rank) {}

std::unique_ptr<Communicator> Communicator::duplicate() {
  std::vector<std::size_t> members(size());
  std::iota(members.begin(), members.end(), std::size_t{0});
  return group(members);
}

void Communicator::issue_into(const tensor::WorkQueue&) {
  base::check(size() == 1, "an engine that works in the host's memory has no queue: {} members", size());
}

void Communicator::all_reduce(Elements elements, Tag tag) {
  start_all_reduce(elements, tag).wait();
}

void Communicator::reduce_scatter(ConstElements source, Elements destination,
                                  std::span<const std::size_t> counts, Tag tag) {
  start_reduce_scatter(source, destination, counts, tag).wait();
}

void Communicator::all_gather(ConstElements source, Elements destination, std::span<const std::size_t> counts,
                              Tag tag) {
  start_all_gather(source, destination, counts, tag).wait();
}

void Communicator::broadcast(Elements elements, std::size_t root, Tag tag) {
  start_broadcast(elements, root, tag).wait();
}

void Communicator::all_to_all(ConstElements source, std::span<const std::size_t> send_counts,
                              Elements destination, std::span<const std::size_t> receive_counts, Tag tag) {
  start_all_to_all(source, send_counts, destination, receive_counts, tag).wait();
}

void Communicator::barrier(Tag tag) {
  start_barrier(tag).wait();
}

void Communicator::send(std::size_t to, Tag tag, ConstElements elements) {
  start_send(to, tag, elements).wait();
}

void Communicator::receive(std::size_t from, Tag tag, Elements elements) {
  start_receive(from, tag, elements).wait();
}

std::vector<std::size_t> even_counts(std::size_t num_elements, std::size_t num_parts) {
  std::vector<std::size_t> counts(num_parts);
  for (std::size_t i = 0; i < num_parts; ++i) {
    counts[i] = num_elements * (i + 1) / num_parts - num_elements * i / num_parts;
  }
  return counts;
}

}  // namespace plenum::comm
