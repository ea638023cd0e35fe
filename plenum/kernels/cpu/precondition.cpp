#include "plenum/kernels/cpu/precondition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/row_tasks.h"

namespace plenum::kernels::cpu {
namespace {

/// In parts of some rows each, which find room on the stack, and the parts in their order.
double sum_of_squares(const tensor::Stream& stream, const float* x_ED, std::int64_t E, std::int64_t D) {
  constexpr std::int64_t kMostParts = 256;
  std::array<double, kMostParts> sums;
  const std::int64_t rows = (E + kMostParts - 1) / kMostParts;
  const std::int64_t num_parts = (E + rows - 1) / rows;
  stream.pool().run(static_cast<std::size_t>(num_parts), [&](std::size_t part, std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(part) * rows * D;
    const std::int64_t end = std::min(E * D, begin + rows * D);
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += double{x_ED[i]} * double{x_ED[i]};
    sums[part] = sum;
  });
  return std::accumulate(sums.begin(), sums.begin() + num_parts, 0.0);
}

void precondition_one(const tensor::Stream& stream, const PreconditionedMap& map, float* half) {
  if (map.gradient_ED.num_elements() == 0) return;
  if (map.state_C.data<double>()[index_of(InverseState::IsReady)] == 0) return;
  const std::int64_t E = map.gradient_ED.size(0);
  const std::int64_t D = map.gradient_ED.size(1);
  float* const gradient = map.gradient_ED.data<float>();
  float* const whole = half + E * D;
  parallel_gemm(stream, {.m = E,
                         .n = D,
                         .k = D,
                         .a = {.data = gradient, .stride = D},
                         .b = {.data = map.inverse_a_DD.data<float>(), .stride = D},
                         .c = half,
                         .c_stride = D});
  parallel_gemm(stream, {.m = E,
                         .n = D,
                         .k = E,
                         .a = {.data = map.inverse_b_EE.data<float>(), .stride = E},
                         .b = {.data = half, .stride = D},
                         .c = whole,
                         .c_stride = D});
  const double before = sum_of_squares(stream, gradient, E, D);
  const double after = sum_of_squares(stream, whole, E, D);
  const auto scale = static_cast<float>(std::sqrt(before / after));
  if (!(std::isfinite(scale) && scale > 0)) return;
  for_each_row(stream, E, [&](std::int64_t row, std::size_t) {
    for (std::int64_t i = row * D; i < (row + 1) * D; ++i) gradient[i] = scale * whole[i];
  });
}

}  // namespace

void precondition(const tensor::Stream& stream, const Precondition& args) {
  check_scratch(stream, gemm_scratch_bytes());
  for (const PreconditionedMap& map : args.maps) precondition_one(stream, map, args.room.data<float>());
}

}  // namespace plenum::kernels::cpu
