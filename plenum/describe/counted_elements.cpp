#include "plenum/describe/counted_elements.h"

#include "plenum/base/check.h"

namespace plenum::describe {

ParameterTable::ElementRange counted_elements(const ParameterTable::ElementRange& range,
                                              std::size_t holder_index, std::size_t num_holders) {
  base::check(holder_index < num_holders, "there are {} holders, and none is holder {}", num_holders,
              holder_index);
  constexpr std::int64_t kAligned = 128;
  const std::int64_t count = range.end - range.begin;
  const auto begin_of = [&](std::size_t holder) {
    if (holder == num_holders) return range.end;
    const auto num_units = static_cast<std::size_t>(count / kAligned);
    return range.begin + static_cast<std::int64_t>(num_units * holder / num_holders) * kAligned;
  };
  return {begin_of(holder_index), begin_of(holder_index + 1)};
}

}  // namespace plenum::describe
