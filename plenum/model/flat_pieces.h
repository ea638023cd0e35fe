#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plenum/base/function_ref.h"

namespace plenum::model {

/// A part of a flat buffer with a value for every element of a parameter table, borrowed.
struct FlatPiece {
  std::int64_t begin = 0;  ///< of the table's elements
  std::span<float> values;
};

/// Adds what of a piece lies in [begin, end) of the table's elements.
void add_within(std::int64_t begin, std::int64_t end, const FlatPiece& piece, std::vector<FlatPiece>& pieces);

/// A flat buffer as it lies in memory: in one piece, or in several that belong to different ranks.
class FlatPieces {
 public:
  FlatPieces() = default;
  /// In one piece.
  FlatPieces(std::span<float> whole) : FlatPieces(std::vector{FlatPiece{0, whole}}) {}
  /// In any order; empty ones count nothing. Throws InternalError where two overlap.
  explicit FlatPieces(std::vector<FlatPiece> pieces);

  /// Whether there is nothing of it.
  bool is_empty() const { return pieces_.empty(); }
  /// Whether every element of a table of so many is there.
  bool is_whole(std::int64_t num_elements) const;
  /// Calls visit(first, values), in order, for all parts that lie in [begin, end) of the table's elements;
  /// `first` is counted from `begin` on.
  void for_each_in(std::int64_t begin, std::int64_t end,
                   base::FunctionRef<void(std::size_t, std::span<float>)> visit) const;

 private:
  std::vector<FlatPiece> pieces_;  ///< in order
};

}  // namespace plenum::model
