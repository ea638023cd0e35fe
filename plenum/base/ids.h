#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace plenum::base {

/// A number that names a thing of one kind: ranks, stages, micro-batches and layers cannot be mixed up.
template <typename Kind, std::unsigned_integral Number>
struct Id {
  Number value = 0;

  static constexpr Id none() { return {std::numeric_limits<Number>::max()}; }
  static constexpr Id at(std::size_t index) { return {static_cast<Number>(index)}; }

  constexpr std::size_t index() const { return value; }
  constexpr bool is_none() const { return *this == none(); }
  // clang-tidy 14 takes the generated comparison with 0 for a null pointer.
  friend constexpr auto operator<=>(const Id&, const Id&) = default;  // NOLINT(modernize-use-nullptr)
};

/// A process or thread that takes part in training; under tensor parallelism, the group that acts as one.
using Rank = Id<struct RankKind, std::uint32_t>;
/// A run of consecutive layers that one rank computes; its parameters may lie on several ranks.
using StageId = Id<struct StageKind, std::uint16_t>;
/// A part of the global batch, counted over all replicas.
using MicroBatchId = Id<struct MicroBatchKind, std::uint32_t>;
/// A layer of the whole model, counted from the input.
using LayerId = Id<struct LayerKind, std::uint16_t>;

}  // namespace plenum::base
