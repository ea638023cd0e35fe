#include "plenum/optim/optimizer.h"

namespace plenum::optim {

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

}  // namespace plenum::optim
