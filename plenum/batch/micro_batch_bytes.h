#pragma once

#include <cstddef>

#include "plenum/batch/capacity.h"

namespace plenum::batch {

/// What a MicroBatch takes of the host's memory at most. Vectors that grow element by element count twice.
std::size_t micro_batch_bytes(const Capacity& capacity);

}  // namespace plenum::batch
