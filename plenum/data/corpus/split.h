#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace plenum::data {

/// The two parts of a dataset: what is trained on, and what is set aside for evaluation.
enum class Split { Train = 0, Holdout = 1 };

inline constexpr std::array<Split, 2> kSplits = {Split::Train, Split::Holdout};

constexpr std::size_t index_of(Split split) {
  return static_cast<std::size_t>(split);
}

/// Also the stem of the split's files.
constexpr std::string_view name_of(Split split) {
  return split == Split::Train ? "train" : "holdout";
}

}  // namespace plenum::data
