#include "plenum/optim/layer_decay.h"

#include <cmath>

namespace plenum::optim {

float rate_factor(const describe::Parameter& parameter, const describe::ParameterTable& table, double decay) {
  const std::size_t num_layers = table.model().layers.size();
  std::size_t depth = 0;  // below the heads
  if (parameter.part == describe::ModelPart::Layer) depth = num_layers - parameter.part_index;
  if (parameter.part == describe::ModelPart::Embedding) depth = num_layers + 1;
  return static_cast<float>(std::pow(decay, static_cast<double>(depth)));
}

}  // namespace plenum::optim
