#pragma once

#include <span>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/memory/kfac_memory.h"
#include "plenum/train/checkpoint_tensors.h"

namespace plenum::train {

/// What K-FAC keeps from step to step, by the names of the weights whose gradients it preconditions: their
/// inverses, running averages if there are any, and what is known of them (kernels::InverseState, of which
/// each number is two words). All maps of the model are listed, so that every process knows the same file;
/// those that no `rank` owns have no values.
std::vector<StateTensor> kfac_states(const describe::ModelDescription& model,
                                     std::span<const memory::KfacMemory* const> ranks,
                                     memory::RunningAverages averages);

}  // namespace plenum::train
