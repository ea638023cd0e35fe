#include "plenum/kernels/soap_step.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/soap_step.h"
#include "plenum/kernels/cuda/product/soap_step.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_soap_scalars(const tensor::ConstTensorView& scalars_C) {
  check_argument("scalars_C", scalars_C, tensor::DType::Float64,
                 {static_cast<std::int64_t>(kNumStepScalars)});
}

void check_soap_groups(std::span<const FlatMatrices> groups, const tensor::Shape& shape) {
  base::check(shape.num_dims() == 1, "buffers must be flat: {}", to_string(shape));
  for (const FlatMatrices& group : groups) {
    const std::int64_t end =
        group.begin_of(std::max<std::int64_t>(0, group.count - 1)) + group.num_elements();
    base::check(group.begin >= 0 && end <= shape[0], "matrices must lie in the buffers: {} from {} on",
                group.count, group.begin);
  }
}

void check_soap_room(const tensor::Stream& stream, std::span<const FlatMatrices> groups, std::int64_t limit,
                     const tensor::TensorView& room) {
  const std::int64_t least_room = workspace::soap_room_elements(stream.device(), groups, limit);
  base::check(room.num_elements() >= least_room, "SOAP needs room for {} elements: {} given", least_room,
              room.num_elements());
}

void check_soap_on_cpu(const tensor::Stream& stream) {
  base::check(stream.device() == tensor::Device::Cpu, "the parts of a step of SOAP run on the CPU alone");
}

}  // namespace

void soap_step(const tensor::Stream& stream, const SoapStep& args) {
  const tensor::Shape& shape = args.weight_N.shape();
  check_soap_groups(args.groups, shape);
  check_argument("weight_N", args.weight_N, shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("first_moment_N", args.first_moment_N, shape);
  check_argument("second_moment_N", args.second_moment_N, shape);
  check_soap_scalars(args.scalars_C);
  if (args.compute_weight_N)
    check_argument("compute_weight_N", args.compute_weight_N, tensor::DType::BFloat16, shape);
  check_argument("state", args.state, {workspace::soap_state_elements(args.groups, args.limit)});
  check_soap_room(stream, args.groups, args.limit, args.room);
  dispatch<&cpu::soap_step, &cuda::soap_step>(stream, args);
}

void soap_factors(const tensor::Stream& stream, const SoapFactors& args) {
  check_soap_on_cpu(stream);
  check_soap_groups(args.groups, args.gradient_N.shape());
  check_argument("state", args.state, {workspace::soap_state_elements(args.groups, args.limit)});
  check_soap_room(stream, args.groups, args.limit, args.room);
  check_soap_scalars(args.scalars_C);
  cpu::soap_factors(stream, args);
}

void soap_basis(const tensor::Stream& stream, const SoapBasis& args) {
  check_soap_on_cpu(stream);
  const std::int64_t N = args.basis_NN.size(0);
  check_argument("basis_NN", args.basis_NN, {N, N});
  check_argument("factor_NN", args.factor_NN, {N, N});
  base::check(args.room.num_elements() >= N * N, "an iteration needs room for {} elements: {} given", N * N,
              args.room.num_elements());
  if (args.scalars_C) check_soap_scalars(args.scalars_C);
  if (args.iterate_NN) {
    check_argument("iterate_NN", args.iterate_NN, {N, N});
    base::check(
        0 <= args.first_step && args.first_step <= args.end_step && args.end_step <= num_soap_basis_steps(N),
        "an iteration has no steps {} to {}", args.first_step, args.end_step);
  }
  cpu::soap_basis(stream, args);
}

void soap_directions(const tensor::Stream& stream, const SoapDirections& args) {
  check_soap_on_cpu(stream);
  const tensor::Shape& shape = args.gradient_N.shape();
  check_soap_groups(args.groups, shape);
  check_soap_groups(args.others, shape);
  check_argument("first_moment_N", args.first_moment_N, shape);
  check_argument("second_moment_N", args.second_moment_N, shape);
  check_argument("state", args.state, {workspace::soap_state_elements(args.groups, args.limit)});
  check_soap_room(stream, args.groups, args.limit, args.room);
  check_soap_room(stream, args.others, args.limit, args.room);
  check_soap_scalars(args.scalars_C);
  cpu::soap_directions(stream, args);
}

void soap_weights(const tensor::Stream& stream, const SoapWeights& args) {
  check_soap_on_cpu(stream);
  check_soap_groups(args.groups, args.weight_N.shape());
  check_argument("direction_N", args.direction_N, args.weight_N.shape());
  check_soap_scalars(args.scalars_C);
  cpu::soap_weights(stream, args);
}

}  // namespace plenum::kernels
