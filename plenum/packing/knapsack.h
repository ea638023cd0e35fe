#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plenum::packing {

/// The most valuable patterns of at most `depth` lengths, for every capacity up to `capacity`, when a
/// sequence of length n is worth `values[n]`. `Value` is double to search, std::int64_t to prove.
///
/// Dynamic programming over max-plus convolutions: with f_k(c) the best value of at most k lengths in c
/// tokens, f_{a+b}(c) = max_j f_a(c - j) + f_b(j). Depths are composed by doubling, so a table costs
/// O(capacity * min(distinct lengths, capacity) * log depth); without a binding depth it is the unbounded
/// knapsack in O(capacity * distinct lengths).
template <typename Value>
class PatternKnapsack {
 public:
  /// `values` has capacity + 1 entries; values[0] is 0 and entries at or below 0 are never used.
  PatternKnapsack(std::span<const Value> values, std::int64_t depth);

  /// The greatest value of a pattern of at most `depth` lengths that fits in `tokens`.
  Value best(std::int64_t tokens) const { return nodes_.back().table[static_cast<std::size_t>(tokens)]; }

  /// Appends the lengths of a pattern worth best(tokens) to `lengths`, in no particular order.
  void append_best(std::int64_t tokens, std::vector<std::int32_t>& lengths) const;

 private:
  /// A table f_k and the two it was composed of; a leaf is f_1 (no parts) or the unbounded table.
  struct Node {
    std::vector<Value> table;
    std::int64_t left = -1;
    std::int64_t right = -1;
  };

  std::int64_t compose(std::int64_t left, std::int64_t right);
  void append_unbounded(std::int64_t tokens, std::vector<std::int32_t>& lengths) const;
  void append_node(std::int64_t node, std::int64_t tokens, std::vector<std::int32_t>& lengths) const;

  std::int64_t capacity_;
  bool unbounded_ = false;
  std::vector<std::int32_t> items_;      ///< lengths whose value exceeds that of every shorter one
  std::vector<std::int32_t> best_item_;  ///< the most valuable single length within n tokens; 0 if none
  std::vector<Value> item_values_;       ///< and its value: f_1
  std::vector<Node> nodes_;
};

extern template class PatternKnapsack<double>;
extern template class PatternKnapsack<std::int64_t>;

}  // namespace plenum::packing
