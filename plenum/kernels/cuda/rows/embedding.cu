#include <algorithm>

#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/row_block.cuh"
#include "plenum/kernels/cuda/rows/embedding.h"
#include "plenum/kernels/cuda/rows/layer_norm_gradient.h"
#include "plenum/kernels/cuda/rows/table_gradient.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

struct ForwardArguments {
  const std::int32_t* entry_T[kNumTables];  ///< null: every row has an entry of its own
  const __nv_bfloat16* table[kNumTables];
  const float* gamma_D;
  const float* beta_D;
  float epsilon;
  DeviceDropout dropout;
  DeviceIdentities rows;
  __nv_bfloat16* z_TD;
  __nv_bfloat16* y_TD;
  float* mean_T;
  float* inverse_deviation_T;
  int num_rows;
  int width;
};

constexpr int kRows = 2;
constexpr int kBlocks = 8;  // at once on a multiprocessor

template <bool kIsAligned, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads, kMaxThreads == kNarrowThreads ? kBlocks : 1)
    forward_rows(const ForwardArguments args) {
  const RowTile<kIsAligned, kRows> tile(static_cast<int>(blockIdx.x), args.num_rows, args.width);
  PackedVector read[kRows][kNumTables];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (std::size_t t = 0; t < kNumTables; ++t) {
      const int row = tile.nearest_row(r);
      read[r][t] = tile.load_entry(args.table[t], args.entry_T[t] == nullptr ? row : args.entry_T[t][row]);
    }
  }
  FloatVector z[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    // Backward sees z as it is kept; the moments are those of what it sees.
    z[r] = rounded(sum_of(sum_of(unpack(read[r][0]), unpack(read[r][1])), unpack(read[r][2])));
  }
  const RowMoments<kRows> moments = moments_of_rows<kMaxThreads>(tile, z, args.width, args.epsilon);
  DropoutBytes<kRows> bytes;
  if (args.dropout.is_on()) bytes = draw_dropout(args.dropout, load_drawn_rows(args.rows, tile));
  const FloatVector gamma = tile.load_columns(args.gamma_D);
  const FloatVector beta = tile.load_columns(args.beta_D);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    FloatVector y = normalised(z[r], moments, r, gamma, beta);
    if (args.dropout.is_on()) y = bytes.apply(args.dropout, y, r);
    tile.store(args.z_TD, r, z[r]);
    tile.store(args.y_TD, r, y);
  }
  store_moments(tile, moments, args.mean_T, args.inverse_deviation_T);
}

}  // namespace

void embedding_forward(const tensor::Stream& stream, const EmbeddingForward& args) {
  const std::int64_t num_rows = args.y_TD.size(0);
  const std::int64_t width = args.y_TD.size(1);
  if (num_rows == 0) return;
  const bool is_looked_up = static_cast<bool>(args.looked_up_TD);
  const tensor::ConstTensorView words = is_looked_up ? args.looked_up_TD : args.word_VD;
  const ForwardArguments arguments = {
      .entry_T = {is_looked_up ? nullptr : args.id_T.data<std::int32_t>(),
                  args.position_T.data<std::int32_t>(), args.segment_T.data<std::int32_t>()},
      .table = {bfloat16_data(words), bfloat16_data(args.position_PD), bfloat16_data(args.segment_GD)},
      .gamma_D = args.gamma_D.data<float>(),
      .beta_D = args.beta_D.data<float>(),
      .epsilon = args.epsilon,
      .dropout = DeviceDropout(args.dropout),
      .rows = DeviceIdentities(args.rows),
      .z_TD = bfloat16_data(args.z_TD),
      .y_TD = bfloat16_data(args.y_TD),
      .mean_T = args.mean_T.data<float>(),
      .inverse_deviation_T = args.inverse_deviation_T.data<float>(),
      .num_rows = static_cast<int>(num_rows),
      .width = static_cast<int>(width)};
  const bool is_aligned = are_rows_aligned(width, words, args.position_PD, args.segment_GD, args.gamma_D,
                                           args.beta_D, args.z_TD, args.y_TD);
  const int num_threads = threads_of_row(width);
  for_row_variant(is_aligned, num_threads, [&](auto aligned, auto max_threads) {
    const unsigned num_blocks = RowTile<aligned(), kRows>::count(num_rows);
    forward_rows<aligned(), max_threads()><<<num_blocks, num_threads, 0, stream.cuda().handle()>>>(arguments);
  });
  tensor::check_cuda(cudaGetLastError(), "start the embedding");
}

void embedding_backward(const tensor::Stream& stream, const EmbeddingBackward& args) {
  layer_norm_gradient(stream, {.dy_TD = args.dy_TD,
                               .z_TD = args.z_TD,
                               .mean_T = args.mean_T,
                               .inverse_deviation_T = args.inverse_deviation_T,
                               .gamma_D = args.gamma_D,
                               .dropout = args.dropout,
                               .dropout_place = DropoutPlace::BehindNorm,
                               .rows = args.rows,
                               .dz_TD = args.dz_TD,
                               .dx_TD = {},
                               .dgamma_D = args.dgamma_D,
                               .dbeta_D = args.dbeta_D});
  add_table_gradients(stream, args.dz_TD,
                      {TableGradient{args.by_word, args.dword_VD, args.words.first},
                       {args.by_position, args.dposition_PD},
                       {args.by_segment, args.dsegment_GD}});
}

}  // namespace plenum::kernels::cuda
