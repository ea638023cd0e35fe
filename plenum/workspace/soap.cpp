#include "plenum/workspace/soap.h"

#include <algorithm>

namespace plenum::workspace {

SoapPlace soap_place(const FlatMatrices& matrices, std::int64_t limit, std::int64_t begin) {
  const auto rotated = [&](std::int64_t size) { return size <= limit ? size : 0; };
  const std::int64_t rows = rotated(matrices.rows);
  return {.rows = rows,
          .columns = rotated(matrices.columns),
          .row_begin = begin,
          .column_begin = begin + 2 * matrices.count * rows * rows,
          .count = matrices.count};
}

std::int64_t soap_state_elements(std::span<const FlatMatrices> groups, std::int64_t limit) {
  std::int64_t end = 0;
  for (const FlatMatrices& group : groups) end = soap_place(group, limit, end).end();
  return end;
}

std::int64_t soap_room_elements(std::span<const FlatMatrices> groups, std::int64_t limit) {
  std::int64_t most = 0;
  for (const FlatMatrices& group : groups) {
    const SoapPlace place = soap_place(group, limit, 0);
    const std::int64_t size = std::max(place.rows, place.columns);
    most = std::max(most, 4 * group.num_elements() + group.count * size * size);
  }
  return most;
}

}  // namespace plenum::workspace
