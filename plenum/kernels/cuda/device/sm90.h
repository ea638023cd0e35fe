#pragma once

namespace plenum::kernels::cuda {

/// Whether this build has the kernels of *_sm90.cu, which are for Hopper alone (PLENUM_HOPPER).
bool has_sm90_kernels();

}  // namespace plenum::kernels::cuda
