#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/batch/group_label.h"

namespace plenum::reference {

/// Of each row of [M, C] that begins a group, the mean over the columns of -log softmax(column)[answer], the
/// softmax over the group's rows; of every other row 0.
inline std::vector<double> group_losses(const std::vector<double>& logits_MC,
                                        const std::vector<std::int32_t>& label_M) {
  using batch::GroupLabel;
  const std::size_t M = label_M.size();
  const std::size_t columns = M == 0 ? 0 : logits_MC.size() / M;
  std::vector<double> losses(M);
  for (std::size_t first = 0; first < M; ++first) {
    if (label_M[first] == -1 || !GroupLabel::is_first(label_M[first])) continue;
    std::size_t end = first + 1;
    while (end < M && label_M[end] != -1 && !GroupLabel::is_first(label_M[end])) ++end;
    for (std::size_t column = 0; column < columns; ++column) {
      double answer = 0;
      for (std::size_t row = first; row < end; ++row) {
        if (GroupLabel::is_answer(label_M[row], static_cast<int>(column)))
          answer = logits_MC[row * columns + column];
      }
      double sum = 0;
      for (std::size_t row = first; row < end; ++row)
        sum += std::exp(logits_MC[row * columns + column] - answer);
      losses[first] += std::log(sum) / static_cast<double>(columns);
    }
  }
  return losses;
}

}  // namespace plenum::reference
