#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/row_block.cuh"
#include "plenum/kernels/cuda/rows/layer_norm.h"
#include "plenum/kernels/cuda/rows/layer_norm_gradient.h"
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
  int num_rows;
  int width;
};

constexpr int kRows = 2;
constexpr int kBlocks = 8;  // at once on a multiprocessor

// Everything is read before anything is written: z and y may be x or the residual.
template <bool kIsAligned, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads, kMaxThreads == kNarrowThreads ? kBlocks : 1)
    forward_rows(const ForwardArguments args) {
  const RowTile<kIsAligned, kRows> tile(static_cast<int>(blockIdx.x), args.num_rows, args.width);
  PackedVector x[kRows];
  PackedVector residual[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    x[r] = tile.load(args.x_TD, r);
    residual[r] = args.residual_TD != nullptr ? tile.load(args.residual_TD, r) : PackedVector{};
  }
  FloatVector z[kRows];
  if (args.dropout.is_on()) {
    const DropoutBytes<kRows> bytes = draw_dropout(args.dropout, load_drawn_rows(args.rows, tile));
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      z[r] = bytes.apply_and_add(args.dropout, unpack(x[r]), r, unpack(residual[r]));
  } else {
#pragma unroll
    for (int r = 0; r < kRows; ++r) z[r] = sum_of(unpack(x[r]), unpack(residual[r]));
  }
  // Backward sees z as it is kept; the moments are those of what it sees.
#pragma unroll
  for (int r = 0; r < kRows; ++r) z[r] = rounded(z[r]);
  const RowMoments<kRows> moments = moments_of_rows<kMaxThreads>(tile, z, args.width, args.epsilon);
  const FloatVector gamma = tile.load_columns(args.gamma_D);
  const FloatVector beta = tile.load_columns(args.beta_D);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (args.z_TD != nullptr) tile.store(args.z_TD, r, z[r]);
    tile.store(args.y_TD, r, normalised(z[r], moments, r, gamma, beta));
  }
  store_moments(tile, moments, args.mean_T, args.inverse_deviation_T);
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
                                      .num_rows = static_cast<int>(num_rows),
                                      .width = static_cast<int>(width)};
  const bool is_aligned =
      are_rows_aligned(width, args.x_TD, args.residual_TD, args.gamma_D, args.beta_D, args.z_TD, args.y_TD);
  const int num_threads = threads_of_row(width);
  for_row_variant(is_aligned, num_threads, [&](auto aligned, auto max_threads) {
    const unsigned num_blocks = RowTile<aligned(), kRows>::count(num_rows);
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
                               .dbeta_D = args.dbeta_D,
                               .db_D = args.db_D});
}

}  // namespace plenum::kernels::cuda
