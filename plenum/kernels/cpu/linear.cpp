#include "plenum/kernels/cpu/linear.h"

#include <type_traits>

#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

/// Adds the sums over T rows of kVectors vectors, which lie E floats apart, to db. Each lane is added from
/// the first row to the last.
template <std::int64_t kVectors, typename Lanes>
void add_vectors(const float* dy, std::int64_t T, std::int64_t E, Lanes lanes, float* db) {
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  Vec sums[kVectors] = {};
  for (std::int64_t t = 0; t < T; ++t) {
    for (std::int64_t i = 0; i < kVectors; ++i) sums[i] += load_first(dy + t * E + i * kStep, lanes);
  }
  for (std::int64_t i = 0; i < kVectors; ++i) {
    store_first(db + i * kStep, load_first(db + i * kStep, lanes) + sums[i], lanes);
  }
}

/// db += sum over rows of dy: each column has one owner. Several neighbouring cache lines of a row are read
/// together, so that as many sums go on at a time and the memory is read ahead.
void add_column_sums(const tensor::Stream& stream, const tensor::ConstTensorView& dy_TE, float* db_E) {
  constexpr std::int64_t kVectors = 4;
  constexpr std::int64_t kColumns = kVectors * static_cast<std::int64_t>(kLanes);
  const std::int64_t T = dy_TE.size(0);
  const std::int64_t E = dy_TE.size(1);
  const float* const dy = dy_TE.data<float>();
  stream.pool().run(static_cast<std::size_t>((E + kColumns - 1) / kColumns), [&](std::size_t task,
                                                                                 std::size_t) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * kColumns;
    if (begin + kColumns <= E) {
      return add_vectors<kVectors>(dy + begin, T, E, std::integral_constant<std::size_t, kLanes>(),
                                   db_E + begin);
    }
    for_vectors(begin, E, [&](std::int64_t e, auto lanes) { add_vectors<1>(dy + e, T, E, lanes, db_E + e); });
  });
}

}  // namespace

void linear_forward(const tensor::Stream& stream, const LinearForward& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  parallel_gemm(stream, {.m = args.x_TD.size(0),
                         .n = E,
                         .k = D,
                         .a = {.data = args.x_TD.data<float>(), .stride = D},
                         .b = {.data = args.w_ED.data<float>(), .stride = D, .is_transposed = true},
                         .c = args.y_TE.data<float>(),
                         .c_stride = E,
                         .epilogue = {.bias = args.b_E ? args.b_E.data<float>() : nullptr,
                                      .gelu = args.gelu_TE ? args.gelu_TE.data<float>() : nullptr}});
}

void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  parallel_gemm(
      stream, {.m = args.dy_TE.size(0),
               .n = D,
               .k = E,
               .a = {.data = args.dy_TE.data<float>(), .stride = E},
               .b = {.data = args.w_ED.data<float>(), .stride = D},
               .c = args.dx_TD.data<float>(),
               .c_stride = D,
               .accumulate = args.accumulate,
               .epilogue = {.gelu_input = args.gelu_input_TD ? args.gelu_input_TD.data<float>() : nullptr}});
  if (args.db_D) add_column_sums(stream, args.dx_TD, args.db_D.data<float>());
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const std::int64_t D = args.x_TD.size(1);
  const std::int64_t E = args.dy_TE.size(1);
  parallel_gemm(stream, {.m = E,
                         .n = D,
                         .k = args.x_TD.size(0),
                         .a = {.data = args.dy_TE.data<float>(), .stride = E, .is_transposed = true},
                         .b = {.data = args.x_TD.data<float>(), .stride = D},
                         .c = args.dw_ED.data<float>(),
                         .c_stride = D,
                         .accumulate = args.accumulate});
  if (args.db_E) add_column_sums(stream, args.dy_TE, args.db_E.data<float>());
}

std::size_t linear_scratch_bytes() {
  return gemm_scratch_bytes();
}

}  // namespace plenum::kernels::cpu
