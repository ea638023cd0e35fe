#include "plenum/kernels/cpu/rows.h"

#include <algorithm>

#include "plenum/kernels/cpu/row_tasks.h"

namespace plenum::kernels::cpu {

void gather_rows_forward(const tensor::Stream& stream, const GatherRowsForward& args) {
  const std::int64_t num_rows = args.x_TD.size(0);
  const std::int64_t width = args.x_TD.size(1);
  const float* const x_TD = args.x_TD.data<float>();
  const std::int32_t* const index_M = args.index_M.data<std::int32_t>();
  float* const y_MD = args.y_MD.data<float>();
  for_each_row(stream, args.y_MD.size(0), [&](std::int64_t row, std::size_t) {
    float* const y = y_MD + row * width;
    const std::int64_t from = index_M[row] - args.slice.first;
    if (from < 0 || from >= num_rows) {
      std::fill(y, y + width, 0.0F);
      return;
    }
    const float* const x = x_TD + from * width;
    std::copy(x, x + width, y);
  });
}

void gather_rows_backward(const tensor::Stream& stream, const GatherRowsBackward& args) {
  const std::int64_t width = args.dx_TD.size(1);
  const float* const dy_MD = args.dy_MD.data<float>();
  const std::int32_t* const index_M = args.index_M.data<std::int32_t>();
  float* const dx_TD = args.dx_TD.data<float>();
  for_each_row(stream, args.dy_MD.size(0), [&](std::int64_t row, std::size_t) {
    if (index_M[row] < 0) return;
    const float* const dy = dy_MD + row * width;
    float* const dx = dx_TD + index_M[row] * width;
    for (std::int64_t i = 0; i < width; ++i) dx[i] += dy[i];
  });
}

}  // namespace plenum::kernels::cpu
