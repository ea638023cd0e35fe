#include "plenum/kernels/cpu/second_moment.h"

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/gemm.h"
#include "plenum/kernels/cpu/triangle_tasks.h"

namespace plenum::kernels::cpu {

void add_second_moment(const tensor::Stream& stream, const AddSecondMoment& args) {
  check_scratch(stream, gemm_scratch_bytes());
  const std::int64_t D = args.moment_DD.size(0);
  const std::int64_t W = args.x_TW.size(1);
  const float* const x_TD = args.x_TW.data<float>() + args.first_column;
  float* const moment_DD = args.moment_DD.data<float>();
  for_lower_blocks(stream, D, [&](const Block& block, std::size_t thread) {
    for (const RowRange& range : args.rows) {
      const float* const x = x_TD + range.begin * W;
      gemm({.m = block.rows,
            .n = block.columns,
            .k = range.end - range.begin,
            .a = {.data = x + block.row, .stride = W, .is_transposed = true},
            .b = {.data = x + block.column, .stride = W},
            .c = moment_DD + block.row * D + block.column,
            .c_stride = D,
            .accumulate = Accumulate::Yes},
           stream.scratch(thread));
    }
  });
}

}  // namespace plenum::kernels::cpu
