#include "plenum/kernels/cuda/product/second_moment.h"

#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/tensor/cuda_memory.h"

namespace plenum::kernels::cuda {

void add_second_moment(const tensor::Stream& stream, const AddSecondMoment& args) {
  if (args.rows.empty()) return;
  const std::int64_t D = args.moment_DD.size(0);
  const std::int64_t W = args.x_TW.size(1);
  tensor::BFloat16* const x_TW = args.x_TW.data<tensor::BFloat16>();
  // One product over all rows, whose number is one of few: what lies between the rows that count is cleared.
  std::int64_t end = 0;
  const auto clear_until = [&](std::int64_t begin) {
    if (end == begin) return;
    tensor::zero_cuda(stream.cuda(), x_TW + end * W,
                      static_cast<std::size_t>((begin - end) * W) * sizeof(tensor::BFloat16));
  };
  for (const RowRange& range : args.rows) {
    clear_until(range.begin);
    end = range.end;
  }
  clear_until(args.x_TW.size(0));
  const tensor::BFloat16* const x = x_TW + args.first_column;
  matmul(stream, {.m = D,
                  .n = D,
                  .k = args.x_TW.size(0),
                  .a = {.data = x, .stride = W, .is_transposed = true},
                  .b = {.data = x, .stride = W},
                  .c = args.moment_DD.raw(),
                  .c_dtype = tensor::DType::Float32,
                  .c_stride = D,
                  .accumulate = Accumulate::Yes});
}

}  // namespace plenum::kernels::cuda
