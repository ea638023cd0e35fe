#include "plenum/train/processes.h"

#include <array>
#include <cstdint>
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

}  // namespace plenum::train
