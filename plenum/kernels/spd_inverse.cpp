#include "plenum/kernels/spd_inverse.h"

#include <algorithm>
#include <vector>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/spd_inverse.h"
#include "plenum/kernels/cuda/product/spd_inverse.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void invert_spd(const tensor::Stream& stream, const InvertSpd& args) {
  std::vector<std::int64_t> sizes;
  std::int64_t most_steps = 0;
  for (const SpdMatrix& matrix : args.matrices) {
    base::check(matrix.matrix_NN.shape().num_dims() == 2, "only a matrix has an inverse");
    const std::int64_t N = matrix.matrix_NN.size(0);
    check_argument("matrix_NN", matrix.matrix_NN, {N, N});
    check_argument("state_C", matrix.state_C, tensor::DType::Float64, {kNumInverseStates});
    most_steps = std::max(most_steps, num_inverse_steps(N));
    sizes.push_back(N);
  }
  if (sizes.empty()) return;
  base::check(args.first_step >= 0 && args.first_step <= args.end_step && args.end_step <= most_steps,
              "an inversion of {} steps has no steps {} to {}", most_steps, args.first_step, args.end_step);
  const std::int64_t least_room = workspace::inverse_room_elements(stream.device(), sizes);
  base::check(args.room.dtype() == tensor::DType::Float32 && args.room.num_elements() >= least_room,
              "the inversion of matrices needs room for {} elements: {} given", least_room,
              args.room.num_elements());
  dispatch<&cpu::invert_spd, &cuda::invert_spd>(stream, args);
}

}  // namespace plenum::kernels
