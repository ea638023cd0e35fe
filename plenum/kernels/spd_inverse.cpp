#include "plenum/kernels/spd_inverse.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/spd_inverse.h"
#include "plenum/kernels/cuda/product/spd_inverse.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void invert_spd(const tensor::Stream& stream, const InvertSpd& args) {
  base::check(args.matrix_NN.shape().num_dims() == 2, "only a matrix has an inverse");
  const std::int64_t N = args.matrix_NN.size(0);
  check_argument("matrix_NN", args.matrix_NN, {N, N});
  check_argument("panels_2NP", args.panels_2NP, {2, N, kInversePanel});
  check_argument("state_C", args.state_C, tensor::DType::Float64, {kNumInverseStates});
  base::check(
      args.first_step >= 0 && args.first_step <= args.end_step && args.end_step <= num_inverse_steps(N),
      "an inversion of {} has no steps {} to {}", N, args.first_step, args.end_step);
  dispatch<&cpu::invert_spd, &cuda::invert_spd>(stream, args);
}

}  // namespace plenum::kernels
