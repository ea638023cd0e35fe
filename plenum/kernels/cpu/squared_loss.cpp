#include "plenum/kernels/cpu/squared_loss.h"

#include <bit>
#include <cstddef>
#include <cstdint>

// M rows: a few hundred at most, so one thread does them in double precision.

namespace plenum::kernels::cpu {
namespace {

/// logit - y; 0 where there is no label.
double error_of(float logit, std::int32_t label) {
  return label == -1 ? 0.0 : double{logit} - double{std::bit_cast<float>(label)};
}

}  // namespace

void squared_loss_forward(const tensor::Stream&, const SquaredLossForward& args) {
  const auto label_M = args.label_M.span<std::int32_t>();
  const float* const logits = args.logits_M1.data<float>();
  float* const loss = args.loss_M.data<float>();
  for (std::size_t row = 0; row < label_M.size(); ++row) {
    const double error = error_of(logits[row], label_M[row]);
    loss[row] = static_cast<float>(error * error);
  }
}

void squared_loss_backward(const tensor::Stream&, const SquaredLossBackward& args) {
  const auto label_M = args.label_M.span<std::int32_t>();
  const float* const logits = args.logits_M1.data<float>();
  float* const dlogits = args.dlogits_M1.data<float>();
  for (std::size_t row = 0; row < label_M.size(); ++row) {
    const double scale = label_M[row] == -1 ? 0.0 : 2 * *args.scale_1.data<double>();
    dlogits[row] = static_cast<float>(scale * error_of(logits[row], label_M[row]));
  }
}

}  // namespace plenum::kernels::cpu
