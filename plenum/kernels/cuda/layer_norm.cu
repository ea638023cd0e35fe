#include "plenum/kernels/cuda/layer_norm.h"
#include "plenum/kernels/cuda/layer_norm_gradient.h"
#include "plenum/kernels/cuda/row_block.cuh"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

struct ForwardArguments {
  const __nv_bfloat16* x_TD;
  const __nv_bfloat16* residual_TD;  ///< may be null
  const float* gamma_D;
  const float* beta_D;
  float epsilon;
  DeviceDropout dropout;
  DeviceIdentities rows;
  __nv_bfloat16* z_TD;  ///< may be null
  __nv_bfloat16* y_TD;
  float* mean_T;               ///< may be null
  float* inverse_deviation_T;  ///< may be null
  std::int64_t num_rows;
  int width;
};

// Everything is read before anything is written: z and y may be x or the residual.
template <bool kIsAligned, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads) forward_rows(const ForwardArguments args) {
  const int width = args.width;
  const int column = static_cast<int>(threadIdx.x) * kVectorWidth;
  const RowRange range = {std::int64_t{blockIdx.x} * kRowsAtOnce, args.num_rows};
  PackedVector x[kRowsAtOnce] = {};
  PackedVector residual[kRowsAtOnce] = {};
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    if (range.first + r >= range.end) continue;
    const std::int64_t begin = (range.first + r) * width;
    x[r] = load_packed<kIsAligned>(args.x_TD + begin, column, width);
    if (args.residual_TD != nullptr)
      residual[r] = load_packed<kIsAligned>(args.residual_TD + begin, column, width);
  }

  DropoutBytes bytes{};
  if (args.dropout.is_on()) bytes = draw_dropout(args.dropout, args.rows, range);
  FloatVector z[kRowsAtOnce];
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    z[r] = unpack(x[r]);
    if (args.dropout.is_on()) z[r] = bytes.apply(args.dropout, z[r], r);
    const FloatVector added = unpack(residual[r]);
#pragma unroll
    for (int i = 0; i < kVectorWidth; ++i) z[r][i] += added[i];
    // Backward sees z as it is kept; the moments are those of what it sees.
    z[r] = rounded(z[r]);
  }
  const RowMoments moments = moments_of_rows<kIsAligned>(z, column, width, args.epsilon);
  const FloatVector gamma = load_vector<kIsAligned>(args.gamma_D, column, width);
  const FloatVector beta = load_vector<kIsAligned>(args.beta_D, column, width);
#pragma unroll
  for (int r = 0; r < kRowsAtOnce; ++r) {
    if (range.first + r >= range.end) continue;
    const std::int64_t begin = (range.first + r) * width;
    if (args.z_TD != nullptr) store_vector<kIsAligned>(args.z_TD + begin, column, width, z[r]);
    store_vector<kIsAligned>(args.y_TD + begin, column, width, normalised(z[r], moments, r, gamma, beta));
  }
  store_moments(moments, range, args.mean_T, args.inverse_deviation_T);
}

float* data_or_null(const tensor::TensorView& view) {
  return view ? view.data<float>() : nullptr;
}

}  // namespace

void layer_norm_forward(const tensor::Stream& stream, const LayerNormForward& args) {
  const std::int64_t num_rows = args.x_TD.size(0);
  const std::int64_t width = args.x_TD.size(1);
  if (num_rows == 0) return;
  const ForwardArguments arguments = {.x_TD = bfloat16_data(args.x_TD),
                                      .residual_TD = bfloat16_data(args.residual_TD),
                                      .gamma_D = args.gamma_D.data<float>(),
                                      .beta_D = args.beta_D.data<float>(),
                                      .epsilon = args.epsilon,
                                      .dropout = DeviceDropout(args.dropout),
                                      .rows = DeviceIdentities(args.rows),
                                      .z_TD = bfloat16_data(args.z_TD),
                                      .y_TD = bfloat16_data(args.y_TD),
                                      .mean_T = data_or_null(args.mean_T),
                                      .inverse_deviation_T = data_or_null(args.inverse_deviation_T),
                                      .num_rows = num_rows,
                                      .width = static_cast<int>(width)};
  const bool is_aligned =
      are_rows_aligned(width, args.x_TD, args.residual_TD, args.gamma_D, args.beta_D, args.z_TD, args.y_TD);
  const int num_threads = threads_of_row(width);
  const auto num_blocks = static_cast<unsigned>((num_rows + kRowsAtOnce - 1) / kRowsAtOnce);
  for_row_variant(is_aligned, num_threads, [&](auto aligned, auto max_threads) {
    forward_rows<aligned(), max_threads()><<<num_blocks, num_threads, 0, stream.cuda().handle()>>>(arguments);
  });
  tensor::check_cuda(cudaGetLastError(), "start layer norm");
}

void layer_norm_backward(const tensor::Stream& stream, const LayerNormBackward& args) {
  layer_norm_gradient(stream, {.dy_TD = args.dy_TD,
                               .z_TD = args.z_TD,
                               .mean_T = args.mean_T,
                               .inverse_deviation_T = args.inverse_deviation_T,
                               .gamma_D = args.gamma_D,
                               .dropout = args.dropout,
                               .dropout_place = DropoutPlace::BeforeNorm,
                               .rows = args.rows,
                               .dz_TD = args.dz_TD,
                               .dx_TD = args.dx_TD,
                               .dgamma_D = args.dgamma_D,
                               .dbeta_D = args.dbeta_D});
}

std::size_t layer_norm_scratch_bytes(std::int64_t width) {
  return layer_norm_gradient_scratch_bytes(width);
}

}  // namespace plenum::kernels::cuda
