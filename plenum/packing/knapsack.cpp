#include "plenum/packing/knapsack.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::packing {

namespace {

/// destination[i] = max(destination[i], source[i] + value). The ranges do not overlap.
template <typename Value>
void raise(Value* destination, const Value* source, Value value, std::int64_t size) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < size; ++i) {
    const Value candidate = source[i] + value;
    destination[i] = destination[i] < candidate ? candidate : destination[i];
  }
}

/// Where a nondecreasing table steps up. Only these can be of use as one side of a convolution.
template <typename Value>
std::vector<std::int64_t> steps_of(const std::vector<Value>& table) {
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < table.size(); ++i) {
    if (table[i] > table[i - 1]) steps.push_back(static_cast<std::int64_t>(i));
  }
  return steps;
}

}  // namespace

template <typename Value>
PatternKnapsack<Value>::PatternKnapsack(std::span<const Value> values, std::int64_t depth)
    : capacity_(static_cast<std::int64_t>(values.size()) - 1),
      best_item_(values.size()),
      item_values_(values.size()) {
  base::check(capacity_ >= 0 && depth >= 0, "a knapsack needs a capacity and a depth: capacity={} depth={}",
              capacity_, depth);
  for (std::size_t length = 1; length < values.size(); ++length) {
    const bool better = values[length] > item_values_[length - 1];
    best_item_[length] = better ? static_cast<std::int32_t>(length) : best_item_[length - 1];
    item_values_[length] = better ? values[length] : item_values_[length - 1];
    if (better) items_.push_back(static_cast<std::int32_t>(length));
  }
  unbounded_ = items_.empty() || depth >= capacity_ / items_.front();
  if (unbounded_ || depth <= 1) {
    nodes_.push_back({depth == 0 ? std::vector<Value>(values.size()) : item_values_});
    if (!unbounded_ || depth == 0) return;
    std::vector<Value>& table = nodes_.back().table;
    for (const std::int32_t length : items_) {
      const Value value = item_values_[static_cast<std::size_t>(length)];
      // In stretches of `length`, so that each reads only what the one before has finished.
      for (std::int64_t start = length; start <= capacity_; start += length) {
        raise(&table[static_cast<std::size_t>(start)], &table[static_cast<std::size_t>(start - length)],
              value, std::min<std::int64_t>(length, capacity_ + 1 - start));
      }
    }
    return;
  }
  nodes_.push_back({item_values_});
  std::int64_t power = 0;  // the table of 2^k
  std::int64_t sum = -1;   // the table of the lower k bits of the depth
  for (std::int64_t rest = depth;; rest /= 2) {
    if (rest % 2 == 1) sum = sum < 0 ? power : compose(power, sum);
    if (rest == 1) break;
    power = compose(power, power);
  }
}

template <typename Value>
std::int64_t PatternKnapsack<Value>::compose(std::int64_t left, std::int64_t right) {
  std::vector<std::int64_t> steps = steps_of(nodes_[static_cast<std::size_t>(left)].table);
  std::vector<std::int64_t> right_steps = steps_of(nodes_[static_cast<std::size_t>(right)].table);
  if (right_steps.size() < steps.size()) {
    std::swap(left, right);
    std::swap(steps, right_steps);
  }
  const std::vector<Value>& outer = nodes_[static_cast<std::size_t>(left)].table;
  const std::vector<Value>& inner = nodes_[static_cast<std::size_t>(right)].table;
  std::vector<Value> table = inner;
  for (const std::int64_t step : steps) {
    raise(&table[static_cast<std::size_t>(step)], inner.data(), outer[static_cast<std::size_t>(step)],
          capacity_ + 1 - step);
  }
  nodes_.push_back({std::move(table), left, right});
  return static_cast<std::int64_t>(nodes_.size()) - 1;
}

template <typename Value>
void PatternKnapsack<Value>::append_best(std::int64_t tokens, std::vector<std::int32_t>& lengths) const {
  if (best(tokens) <= Value{0}) return;
  if (unbounded_) {
    append_unbounded(tokens, lengths);
  } else {
    append_node(static_cast<std::int64_t>(nodes_.size()) - 1, tokens, lengths);
  }
}

template <typename Value>
void PatternKnapsack<Value>::append_unbounded(std::int64_t tokens, std::vector<std::int32_t>& lengths) const {
  const std::vector<Value>& table = nodes_.front().table;
  while (table[static_cast<std::size_t>(tokens)] > Value{0}) {
    std::int32_t best_length = 0;
    Value best_value{0};
    for (const std::int32_t length : items_) {
      if (length > tokens) break;
      const Value value =
          item_values_[static_cast<std::size_t>(length)] + table[static_cast<std::size_t>(tokens - length)];
      if (value >= best_value) {  // of equals the longest: fewer, larger pieces round better
        best_value = value;
        best_length = length;
      }
    }
    lengths.push_back(best_length);
    tokens -= best_length;
  }
}

template <typename Value>
void PatternKnapsack<Value>::append_node(std::int64_t node_index, std::int64_t tokens,
                                         std::vector<std::int32_t>& lengths) const {
  const Node& node = nodes_[static_cast<std::size_t>(node_index)];
  if (node.left < 0) {
    const std::int32_t length = best_item_[static_cast<std::size_t>(tokens)];
    if (length > 0) lengths.push_back(length);
    return;
  }
  const std::vector<Value>& left = nodes_[static_cast<std::size_t>(node.left)].table;
  const std::vector<Value>& right = nodes_[static_cast<std::size_t>(node.right)].table;
  std::int64_t best_split = 0;
  Value best_value = right[static_cast<std::size_t>(tokens)];
  for (std::int64_t split = 1; split <= tokens; ++split) {
    const Value value =
        left[static_cast<std::size_t>(split)] + right[static_cast<std::size_t>(tokens - split)];
    if (value > best_value) {
      best_value = value;
      best_split = split;
    }
  }
  append_node(node.left, best_split, lengths);
  append_node(node.right, tokens - best_split, lengths);
}

template class PatternKnapsack<double>;
template class PatternKnapsack<std::int64_t>;

}  // namespace plenum::packing
