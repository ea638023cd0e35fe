#pragma once

#include <cstdint>
#include <span>

namespace plenum::packing {

/// Calls visit(length, copies) for each run of equal lengths of a sorted pattern.
template <typename Visit>
void for_each_run(std::span<const std::int32_t> lengths, Visit visit) {
  for (std::size_t begin = 0; begin < lengths.size();) {
    std::size_t end = begin;
    while (end < lengths.size() && lengths[end] == lengths[begin]) ++end;
    visit(static_cast<std::size_t>(lengths[begin]), static_cast<std::uint64_t>(end - begin));
    begin = end;
  }
}

}  // namespace plenum::packing
