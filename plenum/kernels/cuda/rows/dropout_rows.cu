#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/row_block.cuh"
#include "plenum/kernels/cuda/rows/dropout_rows.h"
#include "plenum/tensor/cuda_check.h"

// T rows, D width: as layer norm's dropout, without the norm.

namespace plenum::kernels::cuda {
namespace {

struct DropoutArguments {
  const __nv_bfloat16* x_TD;  ///< may be y_TD: a thread reads what it writes
  DeviceDropout dropout;
  DeviceIdentities rows;
  __nv_bfloat16* y_TD;
  int num_rows;
  int width;
};

constexpr int kRows = 2;

template <bool kIsAligned, int kMaxThreads>
__global__ void __launch_bounds__(kMaxThreads) drop_rows(const DropoutArguments args) {
  const RowTile<kIsAligned, kRows> tile(static_cast<int>(blockIdx.x), args.num_rows, args.width);
  FloatVector x[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) x[r] = unpack(tile.load(args.x_TD, r));
  if (args.dropout.is_on()) {
    const DropoutBytes<kRows> bytes = draw_dropout(args.dropout, load_drawn_rows(args.rows, tile));
#pragma unroll
    for (int r = 0; r < kRows; ++r) x[r] = bytes.apply(args.dropout, x[r], r);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) tile.store(args.y_TD, r, x[r]);
}

}  // namespace

void dropout_rows(const tensor::Stream& stream, const DropoutRows& args) {
  const std::int64_t num_rows = args.x_TD.size(0);
  const std::int64_t width = args.x_TD.size(1);
  if (num_rows == 0 || width == 0) return;
  const DropoutArguments arguments = {.x_TD = bfloat16_data(args.x_TD),
                                      .dropout = DeviceDropout(args.dropout),
                                      .rows = DeviceIdentities(args.rows),
                                      .y_TD = bfloat16_data(args.y_TD),
                                      .num_rows = static_cast<int>(num_rows),
                                      .width = static_cast<int>(width)};
  const int num_threads = threads_of_row(width);
  for_row_variant(are_rows_aligned(width, args.x_TD, args.y_TD), num_threads,
                  [&](auto aligned, auto max_threads) {
                    const unsigned num_blocks = RowTile<aligned(), kRows>::count(num_rows);
                    drop_rows<aligned(), max_threads()>
                        <<<num_blocks, num_threads, 0, stream.cuda().handle()>>>(arguments);
                  });
  tensor::check_cuda(cudaGetLastError(), "start the dropout of rows");
}

}  // namespace plenum::kernels::cuda
