#include "plenum/kernels/kronecker_factors.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/kronecker_factors.h"
#include "plenum/kernels/cuda/rows/kronecker_factors.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_pair(tensor::ConstTensorView a_DD, tensor::ConstTensorView b_EE, std::int64_t D, std::int64_t E) {
  check_argument("a_DD", a_DD, {D, D});
  check_argument("b_EE", b_EE, {E, E});
}

void check_state(tensor::ConstTensorView state_C) {
  check_argument("state_C", state_C, tensor::DType::Float64, {kNumInverseStates});
}

void check_running(const RunningFactors& running, std::int64_t D, std::int64_t E) {
  check_pair(running.a_DD, running.b_EE, D, E);
  base::check(running.keep >= 0 && running.keep < 1, "an average keeps a part below 1: {}", running.keep);
}

void check_taken(const TakeInverse& args) {
  const std::int64_t D = args.a_DD.size(0);
  const std::int64_t E = args.b_EE.size(0);
  check_pair(args.a_DD, args.b_EE, D, E);
  check_pair(args.new_a_DD, args.new_b_EE, D, E);
  if (args.skipped_1) check_argument("skipped_1", args.skipped_1, tensor::DType::Float64, {1});
  check_state(args.state_C);
}

}  // namespace

void damp_factors(const tensor::Stream& stream, std::span<const DampFactors> maps) {
  for (const DampFactors& args : maps) {
    const std::int64_t D = args.a_DD.size(0);
    const std::int64_t E = args.b_EE.size(0);
    check_pair(args.a_DD, args.b_EE, D, E);
    check_pair(args.sum_a_DD, args.sum_b_EE, D, E);
    if (args.running.a_DD) check_running(args.running, D, E);
    check_state(args.state_C);
  }
  dispatch<&cpu::damp_factors, &cuda::damp_factors>(stream, maps);
}

void take_inverse(const tensor::Stream& stream, std::span<const TakeInverse> maps) {
  for (const TakeInverse& args : maps) check_taken(args);
  dispatch<&cpu::take_inverse, &cuda::take_inverse>(stream, maps);
}

void return_inverse(const tensor::Stream& stream, std::span<const ReturnInverse> maps) {
  for (const ReturnInverse& args : maps) {
    check_taken(args.taken);
    base::check(static_cast<bool>(args.taken.skipped_1), "whether the step was skipped must be known");
  }
  dispatch<&cpu::return_inverse, &cuda::return_inverse>(stream, maps);
}

void fold_factors(const tensor::Stream& stream, std::span<const FoldFactors> maps) {
  for (const FoldFactors& args : maps) {
    const std::int64_t D = args.sum_a_DD.size(0);
    const std::int64_t E = args.sum_b_EE.size(0);
    check_pair(args.sum_a_DD, args.sum_b_EE, D, E);
    check_running(args.running, D, E);
    check_state(args.state_C);
  }
  dispatch<&cpu::fold_factors, &cuda::fold_factors>(stream, maps);
}

}  // namespace plenum::kernels
