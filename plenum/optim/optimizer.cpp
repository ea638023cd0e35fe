#include "plenum/optim/optimizer.h"

#include <cmath>

namespace plenum::optim {

double default_epsilon(OptimizerKind kind) {
  return kind == OptimizerKind::AdamW ? 1e-8 : 1e-6;
}

Optimizer::Optimizer(const OptimizerOptions& options, const describe::ParameterTable& table,
                     OptimizerBuffers buffers)
    : options_(options), buffers_(buffers) {
  for (const describe::Parameter& parameter : table.parameters()) {
    ranges_.push_back({parameter.begin, parameter.end(), parameter.is_decayed});
  }
}

double Optimizer::clip_scale(double gradient_norm) const {
  if (options_.clip_norm == 0 || gradient_norm <= options_.clip_norm) return 1;
  return options_.clip_norm / gradient_norm;
}

void Optimizer::step(const tensor::Stream& stream, double learning_rate, double gradient_scale,
                     std::uint64_t update_index) {
  const bool is_corrected = options_.kind != OptimizerKind::BertAdam;
  const auto correction = [&](double beta) {
    return is_corrected ? 1 - std::pow(beta, static_cast<double>(update_index)) : 1.0;
  };
  const kernels::AdamStep step{.ranges = ranges_,
                               .gradient_N = buffers_.gradients_N,
                               .weight_N = buffers_.weights_N,
                               .first_moment_N = buffers_.first_moments_N,
                               .second_moment_N = buffers_.second_moments_N,
                               .learning_rate = learning_rate,
                               .beta1 = options_.beta1,
                               .beta2 = options_.beta2,
                               .epsilon = options_.epsilon.value_or(default_epsilon(options_.kind)),
                               .decay = options_.decay,
                               .correction1 = correction(options_.beta1),
                               .correction2 = correction(options_.beta2),
                               .gradient_scale = gradient_scale};
  if (options_.kind == OptimizerKind::Lamb) {
    kernels::lamb_step(stream, step);
  } else {
    kernels::adam_step(stream, step);
  }
}

}  // namespace plenum::optim
