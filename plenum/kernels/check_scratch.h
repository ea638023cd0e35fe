#pragma once

#include <cstddef>

#include "plenum/base/check.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels {

/// Throws InternalError unless each thread has what an op says that it needs: what is written behind the end
/// of scratch would belong to another tensor.
inline void check_scratch(const tensor::Stream& stream, std::size_t bytes) {
  base::check(stream.scratch_bytes() >= bytes, "scratch is too small: {} bytes for each thread, {} needed",
              stream.scratch_bytes(), bytes);
}

}  // namespace plenum::kernels
