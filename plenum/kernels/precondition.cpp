#include "plenum/kernels/precondition.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/precondition.h"
#include "plenum/kernels/cuda/product/precondition.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void precondition(const tensor::Stream& stream, const Precondition& args) {
  std::int64_t num_alike = 0;
  const tensor::Shape* before = nullptr;
  for (const PreconditionedMap& map : args.maps) {
    const tensor::Shape& shape = map.gradient_ED.shape();
    base::check(shape.num_dims() == 2, "the gradient of a map is a matrix");
    const std::int64_t E = shape[0];
    const std::int64_t D = shape[1];
    check_argument("gradient_ED", map.gradient_ED, {E, D});
    check_argument("inverse_a_DD", map.inverse_a_DD, {D, D});
    check_argument("inverse_b_EE", map.inverse_b_EE, {E, E});
    check_argument("state_C", map.state_C, tensor::DType::Float64, {kNumInverseStates});
    num_alike = before != nullptr && *before == shape ? num_alike + 1 : 1;
    before = &shape;
    const std::int64_t least_room = workspace::precondition_room_elements(stream.device(), E * D, num_alike);
    base::check(args.room.dtype() == tensor::DType::Float32 && args.room.num_elements() >= least_room,
                "preconditioning needs room for {} elements: {} given", least_room, args.room.num_elements());
  }
  dispatch<&cpu::precondition, &cuda::precondition>(stream, args);
}

}  // namespace plenum::kernels
