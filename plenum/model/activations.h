#pragma once

#include "plenum/memory/activation_layout.h"

namespace plenum::model {

using memory::Activations;
using memory::HeadActivations;
using memory::LayerActivations;
using memory::LayerErrors;
using memory::LayerRows;
using memory::NormActivations;
using memory::Transients;

}  // namespace plenum::model
