#include "plenum/kernels/cuda/linear.h"

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/column_sums.h"
#include "plenum/kernels/cuda/device_attribute.h"
#include "plenum/kernels/cuda/gelu_gradient.h"
#include "plenum/kernels/cuda/linear_sm90.h"
#include "plenum/kernels/cuda/matmul.h"

namespace plenum::kernels::cuda {
namespace {

using tensor::BFloat16;

/// Room to measure what is added to gradients: of inputs up to 32768 tokens of BERT-large, and of any weight.
constexpr std::size_t kMeasuredBytes = std::size_t{32768} * 1024 * sizeof(BFloat16);

const BFloat16* data_or_null(const tensor::ConstTensorView& view) {
  return view ? view.data<BFloat16>() : nullptr;
}

const __nv_bfloat16* elements(const tensor::ConstTensorView& view) {
  return reinterpret_cast<const __nv_bfloat16*>(view.data<BFloat16>());
}
__nv_bfloat16* elements(const tensor::TensorView& view) {
  return reinterpret_cast<__nv_bfloat16*>(view.data<BFloat16>());
}

/// Whether the kernels of linear_sm90.h are to compute the product of a map on T rows. With fewer rows than
/// kLeastRows they were not measured against cuBLAS.
template <typename... Views>
bool suits_sm90(std::int64_t T, const tensor::ConstTensorView& w_ED, const Views&... views) {
  constexpr std::int64_t kLeastRows = 1024;
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
  const auto is_aligned = [](const auto& view) {
    return reinterpret_cast<std::uintptr_t>(view.raw()) % 16 == 0;
  };
  return T >= kLeastRows && T <= kMostRows && w_ED.size(0) % 64 == 0 && w_ED.size(1) % 64 == 0 &&
         w_ED.size(0) > 0 && w_ED.size(1) > 0 && is_aligned(w_ED) && (is_aligned(views) && ...) &&
         is_hopper();
}

std::int64_t num_gelu_gradient_sums(std::int64_t T) {
  return (T + kRowsOfGeluGradientSums - 1) / kRowsOfGeluGradientSums;
}
std::size_t gelu_gradient_sums_bytes(std::int64_t T, std::int64_t D) {
  return static_cast<std::size_t>(num_gelu_gradient_sums(T) * D) * sizeof(float);
}

bool is_gelu_forward_for_sm90(const LinearForward& args) {
  return args.gelu_TE && args.gelu_TE.raw() != args.y_TE.raw() && args.b_E &&
         suits_sm90(args.x_TD.size(0), args.w_ED, args.x_TD, args.b_E, args.y_TE, args.gelu_TE);
}

bool is_gelu_gradient_for_sm90(const LinearBackwardInput& args) {
  const std::int64_t T = args.dy_TE.size(0);
  return args.gelu_input_TD && gelu_gradient_sums_bytes(T, args.w_ED.size(1)) <= linear_scratch_bytes() &&
         suits_sm90(T, args.w_ED, args.dy_TE, args.gelu_input_TD, args.dx_TD);
}

void gelu_gradient_by_sm90(const tensor::Stream& stream, const LinearBackwardInput& args) {
  const std::int64_t T = args.dy_TE.size(0);
  const std::int64_t D = args.w_ED.size(1);
  float* sums = nullptr;
  if (args.db_D) {
    check_scratch(stream, gelu_gradient_sums_bytes(T, D));
    sums = reinterpret_cast<float*>(stream.scratch().data());
  }
  tensor::check_cuda(linear_gelu_gradient_sm90({.m = T,
                                                .n = D,
                                                .k = args.w_ED.size(0),
                                                .dy = elements(args.dy_TE),
                                                .w = elements(args.w_ED),
                                                .u = elements(args.gelu_input_TD),
                                                .du = elements(args.dx_TD),
                                                .sums = sums},
                                               stream.cuda().handle()),
                     "multiply matrices");
  if (args.db_D)
    add_block_sums(stream, sums, num_gelu_gradient_sums(T), static_cast<int>(D), args.db_D.data<float>());
}

}  // namespace

void linear_forward(const tensor::Stream& stream, const LinearForward& args) {
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  if (is_gelu_forward_for_sm90(args)) {
    return tensor::check_cuda(linear_gelu_forward_sm90({.m = args.x_TD.size(0),
                                                        .n = E,
                                                        .k = D,
                                                        .x = elements(args.x_TD),
                                                        .w = elements(args.w_ED),
                                                        .bias = elements(args.b_E),
                                                        .y = elements(args.y_TE),
                                                        .gelu = elements(args.gelu_TE)},
                                                       stream.cuda().handle()),
                              "multiply matrices");
  }
  matmul(stream, {.m = args.x_TD.size(0),
                  .n = E,
                  .k = D,
                  .a = {.data = args.x_TD.data<BFloat16>(), .stride = D},
                  .b = {.data = args.w_ED.data<BFloat16>(), .stride = D, .is_transposed = true},
                  .c = args.y_TE.raw(),
                  .c_stride = E,
                  .epilogue = {.bias = data_or_null(args.b_E),
                               .gelu = args.gelu_TE ? args.gelu_TE.data<BFloat16>() : nullptr}});
}

void linear_backward_input(const tensor::Stream& stream, const LinearBackwardInput& args) {
  if (is_gelu_gradient_for_sm90(args)) return gelu_gradient_by_sm90(stream, args);
  const std::int64_t D = args.w_ED.size(1);
  const std::int64_t E = args.w_ED.size(0);
  matmul(stream, {.m = args.dy_TE.size(0),
                  .n = D,
                  .k = E,
                  .a = {.data = args.dy_TE.data<BFloat16>(), .stride = E},
                  .b = {.data = args.w_ED.data<BFloat16>(), .stride = D},
                  .c = args.dx_TD.raw(),
                  .c_stride = D,
                  .accumulate = args.accumulate});
  // A pass of its own: the library's epilogues for this cost more (docs/decisions/cuda.md).
  if (args.gelu_input_TD) {
    multiply_gelu_derivative(stream, args.gelu_input_TD, args.dx_TD,
                             args.db_D ? args.db_D.data<float>() : nullptr);
  }
}

void linear_backward_weight(const tensor::Stream& stream, const LinearBackwardWeight& args) {
  const std::int64_t D = args.x_TD.size(1);
  const std::int64_t E = args.dy_TE.size(1);
  matmul(stream, {.m = E,
                  .n = D,
                  .k = args.x_TD.size(0),
                  .a = {.data = args.dy_TE.data<BFloat16>(), .stride = E, .is_transposed = true},
                  .b = {.data = args.x_TD.data<BFloat16>(), .stride = D},
                  .c = args.dw_ED.raw(),
                  .c_dtype = tensor::DType::Float32,
                  .c_stride = D,
                  .accumulate = args.accumulate});
  if (args.db_E) add_column_sums(stream, args.dy_TE, args.db_E.data<float>());
}

std::size_t linear_scratch_bytes() {
  return matmul_scratch_bytes(kMeasuredBytes);
}

}  // namespace plenum::kernels::cuda
