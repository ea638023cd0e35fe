#pragma once

#include <cstdint>
#include <span>

#include "plenum/workspace/optimizer.h"

namespace plenum::workspace {

// Of SOAP, which rotates matrices whose sizes are up to a limit.

/// Where the factors and bases of a group's matrices lie in the flat state: `count` of [N, N] each, factors
/// before bases, those of rows before those of columns. A size of 0: not rotated.
struct SoapPlace {
  std::int64_t rows = 0;          ///< N of the first side
  std::int64_t columns = 0;       ///< of the second
  std::int64_t row_begin = 0;     ///< of its factors; its bases follow
  std::int64_t column_begin = 0;  ///< of the second side
  std::int64_t count = 0;

  std::int64_t end() const { return column_begin + 2 * count * columns * columns; }
};
/// Of a group whose part of the state begins there.
SoapPlace soap_place(const FlatMatrices& matrices, std::int64_t limit, std::int64_t begin);

/// Elements of the state of all groups.
std::int64_t soap_state_elements(std::span<const FlatMatrices> groups, std::int64_t limit);
/// Matrices of a group that are worked on at once: on the GPU as many as fill it, and one at least.
std::int64_t num_soap_at_once(tensor::Device device, const FlatMatrices& matrices);
/// Elements of the room that a step works in: four times those of the matrices that are worked on at once,
/// and a square for each matrix of a group.
std::int64_t soap_room_elements(tensor::Device device, std::span<const FlatMatrices> groups,
                                std::int64_t limit);

}  // namespace plenum::workspace
