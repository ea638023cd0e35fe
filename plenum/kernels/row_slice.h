#pragma once

#include <cstdint>

namespace plenum::kernels {

/// Which rows of a table lie here, where several ranks divide it. Ids stay those of the whole table.
struct RowSlice {
  std::int64_t first = 0;  ///< row of the whole table that is row 0 here
  std::int64_t whole = 0;  ///< rows of the whole table; 0: all of them are here

  /// Rows of the whole table, of which `here` lie here.
  std::int64_t whole_rows(std::int64_t here) const { return whole == 0 ? here : whole; }
};

}  // namespace plenum::kernels
