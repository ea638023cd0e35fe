#include "plenum/kernels/optimizer_step.h"

#include <algorithm>
#include <bit>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/optimizer_step.h"
#include "plenum/kernels/cuda/rows/optimizer_step.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

static_assert(kNumStepScalars == workspace::kNumStepScalars);

void check_scalars(tensor::ConstTensorView scalars_C) {
  check_argument("scalars_C", scalars_C, tensor::DType::Float64,
                 {static_cast<std::int64_t>(kNumStepScalars)});
}

void check_step(const AdamStep& args) {
  const tensor::Shape& shape = args.weight_N.shape();
  base::check(shape.num_dims() == 1, "buffers must be flat: {}", to_string(shape));
  check_argument("weight_N", args.weight_N, shape);
  check_argument("gradient_N", args.gradient_N, shape);
  check_argument("first_moment_N", args.first_moment_N, shape);
  check_argument("second_moment_N", args.second_moment_N, shape);
  check_scalars(args.scalars_C);
  if (args.compute_weight_N) {
    check_argument("compute_weight_N", args.compute_weight_N, tensor::DType::BFloat16, shape);
  }
  std::int64_t end = 0;
  for (const FlatRange& range : args.ranges) {
    base::check(range.begin >= end && range.end >= range.begin && range.end <= shape[0],
                "ranges must increase within the buffers: [{}, {}) after {} of {}", range.begin, range.end,
                end, shape[0]);
    end = range.end;
  }
}

std::int64_t chunk_settings(const FlatRange& range) {
  const std::uint64_t factor = std::bit_cast<std::uint32_t>(range.rate_factor);
  return static_cast<std::int64_t>(factor << 32 | (range.is_decayed ? 1U : 0U));
}

void check_half(const LambHalf& args) {
  check_step(args.step);
  check_argument("squares_R2", args.squares_R2, tensor::DType::Float64, {std::ssize(args.step.ranges), 2});
}

}  // namespace

void add_gradient_squares(const tensor::Stream& stream, const GradientSquares& args) {
  check_argument("gradient_N", args.gradient_N, args.gradient_N.shape());
  check_scalars(args.scalars_C);
  dispatch<&cpu::add_gradient_squares, &cuda::add_gradient_squares>(stream, args);
}

void decide_step(const tensor::Stream& stream, const StepDecision& args) {
  check_scalars(args.scalars_C);
  dispatch<&cpu::decide_step, &cuda::decide_step>(stream, args);
}

void adam_step(const tensor::Stream& stream, const AdamStep& args) {
  check_step(args);
  dispatch<&cpu::adam_step, &cuda::adam_step>(stream, args);
}

void lamb_step(const tensor::Stream& stream, const AdamStep& args) {
  check_step(args);
  dispatch<&cpu::lamb_step, &cuda::lamb_step>(stream, args);
}

void lamb_moments(const tensor::Stream& stream, const LambHalf& args) {
  check_half(args);
  dispatch<&cpu::lamb_moments, &cuda::lamb_moments>(stream, args);
}

void lamb_weights(const tensor::Stream& stream, const LambHalf& args) {
  check_half(args);
  dispatch<&cpu::lamb_weights, &cuda::lamb_weights>(stream, args);
}

std::vector<std::int64_t> optimizer_chunks(std::span<const FlatRange> ranges) {
  constexpr std::int64_t kChunk = workspace::kOptimizerChunk;
  std::vector<std::int64_t> chunks_C4;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::int64_t begin = ranges[i].begin; begin < ranges[i].end; begin += kChunk) {
      chunks_C4.insert(chunks_C4.end(), {begin, std::min(begin + kChunk, ranges[i].end),
                                         chunk_settings(ranges[i]), static_cast<std::int64_t>(i)});
    }
  }
  return chunks_C4;
}

}  // namespace plenum::kernels
