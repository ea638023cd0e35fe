#include "plenum/kernels/cpu/class_loss.h"

#include <algorithm>
#include <cmath>
#include <span>

// S rows, C classes: a few hundred numbers at most, so one thread does them in double precision.

namespace plenum::kernels::cpu {
namespace {

double log_sum_exp(std::span<const float> logits_C) {
  const double maximum = *std::max_element(logits_C.begin(), logits_C.end());
  double sum = 0;
  for (const float logit : logits_C) sum += std::exp(double{logit} - maximum);
  return maximum + std::log(sum);
}

std::span<const float> row_of(tensor::ConstTensorView logits_SC, std::size_t row) {
  const auto classes = static_cast<std::size_t>(logits_SC.size(1));
  return logits_SC.span<float>().subspan(row * classes, classes);
}

}  // namespace

void class_loss_forward(const tensor::Stream&, const ClassLossForward& args) {
  const auto label_S = args.label_S.span<std::int32_t>();
  const auto loss_S = args.loss_S.span<float>();
  for (std::size_t row = 0; row < label_S.size(); ++row) {
    if (label_S[row] < 0) {
      loss_S[row] = 0;
      continue;
    }
    const std::span<const float> logits_C = row_of(args.logits_SC, row);
    const auto label = static_cast<std::size_t>(label_S[row]);
    loss_S[row] = static_cast<float>(log_sum_exp(logits_C) - double{logits_C[label]});
  }
}

void class_loss_backward(const tensor::Stream&, const ClassLossBackward& args) {
  const auto label_S = args.label_S.span<std::int32_t>();
  float* dlogits = args.dlogits_SC.data<float>();
  for (std::size_t row = 0; row < label_S.size(); ++row) {
    const std::span<const float> logits_C = row_of(args.logits_SC, row);
    const auto label = static_cast<std::size_t>(label_S[row]);
    const double lse = log_sum_exp(logits_C);
    const double scale = label_S[row] < 0 ? 0.0 : *args.scale_1.data<double>();
    for (std::size_t i = 0; i < logits_C.size(); ++i) {
      const double share = std::exp(double{logits_C[i]} - lse) - (i == label ? 1.0 : 0.0);
      *dlogits++ = static_cast<float>(scale * share);
    }
  }
}

}  // namespace plenum::kernels::cpu
