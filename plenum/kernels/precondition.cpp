#include "plenum/kernels/precondition.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/precondition.h"
#include "plenum/kernels/cuda/product/precondition.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void precondition(const tensor::Stream& stream, const Precondition& args) {
  base::check(args.gradient_ED.shape().num_dims() == 2, "the gradient of a map is a matrix");
  const std::int64_t E = args.gradient_ED.size(0);
  const std::int64_t D = args.gradient_ED.size(1);
  check_argument("gradient_ED", args.gradient_ED, {E, D});
  check_argument("inverse_a_DD", args.inverse_a_DD, {D, D});
  check_argument("inverse_b_EE", args.inverse_b_EE, {E, E});
  check_argument("state_C", args.state_C, tensor::DType::Float64, {kNumInverseStates});
  check_argument("work_2ED", args.work_2ED, {2, E, D});
  if (args.gradient_ED.num_elements() == 0) return;
  dispatch<&cpu::precondition, &cuda::precondition>(stream, args);
}

}  // namespace plenum::kernels
