#pragma once

#include <cstdint>

#include "plenum/describe/parameter_table.h"

namespace plenum::optim {

enum class OptimizerKind : std::uint8_t {
  AdamW,     ///< Loshchilov and Hutter 2019, as in PyTorch and Hugging Face
  BertAdam,  ///< as in the original BERT: no bias correction
  Lamb,      ///< You et al. 2020, as in NVLAMB
  Kfac,  ///< Martens and Grosse 2015: gradients of layers are preconditioned, then one of the others updates
  Muon,  ///< Jordan et al. 2024, on the weights of layers; AdamW on everything else
  Soap,  ///< Vyas et al. 2024, in the same way
};

/// What the authors of each use: 1e-8 for AdamW (PyTorch, Hugging Face), alone or beside Muon or SOAP, 1e-6
/// for the original BERT and NVLAMB.
double default_epsilon(OptimizerKind kind);

/// Whether the weights of layers are updated by themselves, as matrices.
bool has_layer_update(OptimizerKind kind);

/// Whether the optimizer keeps a second moment of a parameter from step to step.
bool has_second_moment(OptimizerKind kind, const describe::Parameter& parameter);

}  // namespace plenum::optim
