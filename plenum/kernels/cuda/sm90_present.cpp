#include "plenum/kernels/cuda/device/sm90.h"

namespace plenum::kernels::cuda {

bool has_sm90_kernels() {
  return true;
}

}  // namespace plenum::kernels::cuda
