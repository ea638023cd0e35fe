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

std::int64_t num_soap_at_once(tensor::Device device, const FlatMatrices& matrices) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 23;
  const std::int64_t size = std::max<std::int64_t>(matrices.num_elements(), 1);
  const std::int64_t num_filling = std::max<std::int64_t>(kMostElements / size, 1);
  return std::min(matrices.count, device == tensor::Device::Cpu ? 1 : num_filling);
}

std::int64_t soap_room_elements(tensor::Device device, std::span<const FlatMatrices> groups,
                                std::int64_t limit) {
  std::int64_t most = 0;
  for (const FlatMatrices& group : groups) {
    const SoapPlace place = soap_place(group, limit, 0);
    const std::int64_t size = std::max(place.rows, place.columns);
    most = std::max(most,
                    4 * num_soap_at_once(device, group) * group.num_elements() + group.count * size * size);
  }
  return most;
}

}  // namespace plenum::workspace
