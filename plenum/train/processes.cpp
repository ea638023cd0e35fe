#include "plenum/train/processes.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include "plenum/comm/local/local_world.h"

namespace plenum::train {

std::optional<base::Rank> Processes::rank() const {
  if (is_alone()) return std::nullopt;
  return base::Rank::at(ranks_->index());
}

std::unique_ptr<comm::Communicator> Processes::communicator() const {
  if (is_alone()) return comm::local::LocalWorld(1).communicator(comm::Rank::at(0));
  return ranks_->duplicate();
}

std::string Processes::from_first(std::string text) const {
  if (is_alone()) return text;
  constexpr comm::Tag kSize = 0;
  constexpr comm::Tag kText = 1;
  std::array<std::int64_t, 1> size{static_cast<std::int64_t>(text.size())};
  ranks_->start_broadcast(comm::elements_of(std::span<std::int64_t>(size)), 0, kSize).wait();
  text.resize(static_cast<std::size_t>(size.front()));
  const comm::Elements bytes{std::as_writable_bytes(std::span(text)), tensor::DType::Byte};
  if (!text.empty()) ranks_->start_broadcast(bytes, 0, kText).wait();
  return text;
}

std::vector<std::string> Processes::of_all(const std::string& text) const {
  if (is_alone()) return {text};
  constexpr comm::Tag kSizes = 2;
  constexpr comm::Tag kTexts = 3;
  const auto own = static_cast<std::int64_t>(text.size());
  std::vector<std::int64_t> sizes(count());
  const std::vector<std::size_t> ones(count(), 1);
  ranks_
      ->start_all_gather(comm::elements_of(std::span(&own, 1)), comm::elements_of(std::span(sizes)), ones,
                         kSizes)
      .wait();
  const std::vector<std::size_t> counts(sizes.begin(), sizes.end());
  std::string all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), '\0');
  const comm::ConstElements source{std::as_bytes(std::span(text)), tensor::DType::Byte};
  const comm::Elements gathered{std::as_writable_bytes(std::span(all)), tensor::DType::Byte};
  if (!all.empty()) ranks_->start_all_gather(source, gathered, counts, kTexts).wait();
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const std::size_t size : counts) {
    texts.push_back(all.substr(begin, size));
    begin += size;
  }
  return texts;
}

}  // namespace plenum::train
