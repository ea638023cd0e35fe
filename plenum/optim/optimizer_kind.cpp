#include "plenum/optim/optimizer_kind.h"

namespace plenum::optim {

double default_epsilon(OptimizerKind kind) {
  return kind == OptimizerKind::AdamW || has_layer_update(kind) ? 1e-8 : 1e-6;
}

bool has_layer_update(OptimizerKind kind) {
  return kind == OptimizerKind::Muon || kind == OptimizerKind::Soap;
}

bool has_second_moment(OptimizerKind kind, const describe::Parameter& parameter) {
  return kind != OptimizerKind::Muon || !describe::is_hidden_matrix(parameter);
}

}  // namespace plenum::optim
