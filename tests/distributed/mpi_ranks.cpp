#include "tests/distributed/mpi_ranks.h"

#include <exception>
#include <numeric>

#include "tests/comm/ranks.h"

namespace plenum::comm {
namespace {

/// The texts of all ranks.
std::vector<std::string> gather(Communicator& all, const std::string& own) {
  const std::int64_t length = static_cast<std::int64_t>(own.size());
  std::vector<std::int64_t> lengths(all.size());
  const std::vector<std::size_t> ones(all.size(), 1);
  all.start_all_gather(elements_of(std::span(&length, 1)), elements_of(std::span(lengths)), ones, 0).wait();
  const std::vector<std::size_t> counts(lengths.begin(), lengths.end());
  std::string whole(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), ' ');
  const ConstElements source{std::as_bytes(std::span(own)), tensor::DType::Byte};
  const Elements destination{std::as_writable_bytes(std::span(whole)), tensor::DType::Byte};
  all.start_all_gather(source, destination, counts, 0).wait();
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    texts.push_back(whole.substr(begin, count));
    begin += count;
  }
  return texts;
}

}  // namespace

MpiRanks& mpi_ranks() {
  static MpiRanks ranks;
  return ranks;
}

std::size_t most_ranks() {
  return mpi_ranks().all->size();
}

std::vector<std::string> run_ranks(std::size_t num_ranks, const std::function<void(Communicator&)>& work) {
  Communicator& all = *mpi_ranks().all;
  std::string error;
  if (all.index() < num_ranks) {
    std::vector<std::size_t> members(num_ranks);
    std::iota(members.begin(), members.end(), std::size_t{0});
    const std::unique_ptr<Communicator> group = all.group(members);
    try {
      work(*group);
    } catch (const std::exception& caught) {
      error = caught.what();
    }
  }
  std::vector<std::string> errors = gather(all, error);
  errors.resize(num_ranks);
  return errors;
}

}  // namespace plenum::comm
