#pragma once

#include "plenum/describe/parameter_table.h"

namespace plenum::optim {

/// By what layer-wise decay multiplies the learning rate of a parameter of the table. Of layer l of L,
/// counted from 0, it is decay^(L - l); of the embedding, a word table that a head shares among it, decay^(L
/// + 1); of heads it is 1. See docs/math/optimizers.md.
float rate_factor(const describe::Parameter& parameter, const describe::ParameterTable& table, double decay);

}  // namespace plenum::optim
