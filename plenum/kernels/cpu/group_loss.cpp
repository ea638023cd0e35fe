#include "plenum/kernels/cpu/group_loss.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "plenum/batch/group_label.h"

// M rows in groups, C columns: a few numbers for each token at most, so one thread does them in double
// precision.

namespace plenum::kernels::cpu {
namespace {

using batch::GroupLabel;

/// Column c of the logits of the rows [begin, end), which are a group.
struct GroupColumn {
  const float* logits;  ///< [M, C]
  std::int64_t num_columns;
  std::size_t begin;
  std::size_t end;
  int column;

  std::size_t place(std::size_t row) const {
    return row * static_cast<std::size_t>(num_columns) + static_cast<std::size_t>(column);
  }
  double logit(std::size_t row) const { return double{logits[place(row)]}; }
  double log_sum_exp() const {
    double maximum = -std::numeric_limits<double>::infinity();
    for (std::size_t row = begin; row < end; ++row) maximum = std::max(maximum, logit(row));
    double sum = 0;
    for (std::size_t row = begin; row < end; ++row) sum += std::exp(logit(row) - maximum);
    return maximum + std::log(sum);
  }
};

/// Calls `visit` with each column of each group, and `skip` with each row of none, in the order of rows.
template <typename Visit, typename Skip>
void for_each_column(const tensor::ConstTensorView& logits_MC, std::span<const std::int32_t> label_M,
                     Visit visit, Skip skip) {
  for (std::size_t row = 0; row < label_M.size();) {
    if (label_M[row] == -1) {
      skip(row++);
      continue;
    }
    std::size_t end = row + 1;
    while (end < label_M.size() && label_M[end] != -1 && !GroupLabel::is_first(label_M[end])) ++end;
    for (int column = 0; column < logits_MC.size(1); ++column)
      visit(GroupColumn{logits_MC.data<float>(), logits_MC.size(1), row, end, column});
    row = end;
  }
}

}  // namespace

void group_loss_forward(const tensor::Stream&, const GroupLossForward& args) {
  const auto label_M = args.label_M.span<std::int32_t>();
  const auto loss_M = args.loss_M.span<float>();
  const auto num_columns = static_cast<double>(args.logits_MC.size(1));
  std::ranges::fill(loss_M, 0.0F);
  double loss = 0;
  const auto add = [&](const GroupColumn& group) {
    if (group.column == 0) loss = 0;
    for (std::size_t row = group.begin; row < group.end; ++row) {
      if (GroupLabel::is_answer(label_M[row], group.column)) loss -= group.logit(row);
    }
    loss += group.log_sum_exp();
    loss_M[group.begin] = static_cast<float>(loss / num_columns);
  };
  for_each_column(args.logits_MC, label_M, add, [](std::size_t) {});
}

void group_loss_backward(const tensor::Stream&, const GroupLossBackward& args) {
  const auto label_M = args.label_M.span<std::int32_t>();
  const std::int64_t num_columns = args.logits_MC.size(1);
  const double scale = *args.scale_1.data<double>() / static_cast<double>(num_columns);
  float* const dlogits = args.dlogits_MC.data<float>();
  const auto differentiate = [&](const GroupColumn& group) {
    const double lse = group.log_sum_exp();
    for (std::size_t row = group.begin; row < group.end; ++row) {
      const double answer = GroupLabel::is_answer(label_M[row], group.column) ? 1 : 0;
      dlogits[group.place(row)] = static_cast<float>(scale * (std::exp(group.logit(row) - lse) - answer));
    }
  };
  const auto clear = [&](std::size_t row) {
    std::fill_n(dlogits + static_cast<std::int64_t>(row) * num_columns, num_columns, 0.0F);
  };
  for_each_column(args.logits_MC, label_M, differentiate, clear);
}

}  // namespace plenum::kernels::cpu
