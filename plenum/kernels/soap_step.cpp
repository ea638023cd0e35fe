#include "plenum/kernels/soap_step.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/soap_step.h"
#include "plenum/kernels/cuda/product/soap_step.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void soap_step(const tensor::Stream& stream, const SoapStep& args) {
  const tensor::Shape& shape = args.weight_N.shape();
  base::check(shape.num_dims() == 1, "buffers must be flat: {}", to_string(shape));
  check_argument("weight_N", args.weight_N, shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("first_moment_N", args.first_moment_N, shape);
  check_argument("second_moment_N", args.second_moment_N, shape);
  check_argument("scalars_C", args.scalars_C, tensor::DType::Float64,
                 {static_cast<std::int64_t>(kNumStepScalars)});
  if (args.compute_weight_N)
    check_argument("compute_weight_N", args.compute_weight_N, tensor::DType::BFloat16, shape);
  check_argument("state", args.state, {workspace::soap_state_elements(args.groups, args.limit)});
  const std::int64_t least_room = workspace::soap_room_elements(stream.device(), args.groups, args.limit);
  base::check(args.room.num_elements() >= least_room, "SOAP needs room for {} elements: {} given", least_room,
              args.room.num_elements());
  for (const FlatMatrices& group : args.groups) {
    const std::int64_t end =
        group.begin_of(std::max<std::int64_t>(0, group.count - 1)) + group.num_elements();
    base::check(group.begin >= 0 && end <= shape[0], "matrices must lie in the buffers: {} from {} on",
                group.count, group.begin);
  }
  dispatch<&cpu::soap_step, &cuda::soap_step>(stream, args);
}

}  // namespace plenum::kernels
