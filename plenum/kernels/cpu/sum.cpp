#include "plenum/kernels/cpu/sum.h"

#include <numeric>

namespace plenum::kernels::cpu {

void add_sum(const tensor::Stream&, const AddSum& args) {
  const std::span<const float> values = args.x_N.span<float>();
  double& sum = *args.sum_1.data<double>();
  sum += std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace plenum::kernels::cpu
