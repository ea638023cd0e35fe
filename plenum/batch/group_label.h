#pragma once

#include <cstdint>
#include <span>

namespace plenum::batch {

/// Label of a row in a group, of which one row is the answer in each column of logits. A group goes up to the
/// next first row.
struct GroupLabel {
  static constexpr std::int32_t kFirst = 1 << 8;  ///< a group begins with this row
  static constexpr int kMostColumns = 8;
  /// The row is the answer of a column.
  static constexpr std::int32_t answer(int column) { return 1 << column; }
  static constexpr bool is_answer(std::int32_t label, int column) { return (label & answer(column)) != 0; }
  static constexpr bool is_first(std::int32_t label) { return (label & kFirst) != 0; }
};

/// Throws InternalError unless they are labels of whole groups, each with one answer in every column. Labels
/// -1, of no group, may follow groups.
void check_group_labels(std::span<const std::int32_t> labels, int num_columns);

/// How many groups there are.
std::int64_t count_groups(std::span<const std::int32_t> labels);

}  // namespace plenum::batch
