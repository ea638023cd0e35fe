#include "plenum/kernels/dropout.h"

#include <algorithm>
#include <cmath>

namespace plenum::kernels {

std::uint32_t dropout_threshold(double rate) {
  return static_cast<std::uint32_t>(std::clamp(std::lround(rate * 256), 0L, 255L));
}

}  // namespace plenum::kernels
