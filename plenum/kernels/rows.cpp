#include "plenum/kernels/rows.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/rows.h"
#include "plenum/kernels/cuda/rows/rows.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_rows(const tensor::Stream& stream, tensor::ConstTensorView x_TD, tensor::ConstTensorView index_M,
                tensor::ConstTensorView y_MD, const RowSlice& slice = {}) {
  base::check(x_TD.shape().num_dims() == 2 && y_MD.shape().num_dims() == 2, "rows of what shape? {} and {}",
              to_string(x_TD.shape()), to_string(y_MD.shape()));
  check_argument("x_TD", x_TD, stream.precision().of(tensor::Role::Activation), x_TD.shape());
  check_argument("y_MD", y_MD, stream.precision().of(tensor::Role::Activation), {y_MD.size(0), x_TD.size(1)});
  check_argument("index_M", index_M, tensor::DType::Int32, {y_MD.size(0)});
  if (stream.device() == tensor::Device::Cuda) return;  // the host does not see the indices
  const std::int64_t num_rows = slice.whole_rows(x_TD.size(0));
  for (const std::int32_t index : index_M.span<std::int32_t>()) {
    base::check(index >= -1 && index < num_rows, "a row's index is outside: index={} T={}", index, num_rows);
  }
}

}  // namespace

void gather_rows_forward(const tensor::Stream& stream, const GatherRowsForward& args) {
  check_rows(stream, args.x_TD, args.index_M, args.y_MD, args.slice);
  dispatch<&cpu::gather_rows_forward, &cuda::gather_rows_forward>(stream, args);
}

void gather_rows_backward(const tensor::Stream& stream, const GatherRowsBackward& args) {
  check_rows(stream, args.dx_TD, args.index_M, args.dy_MD);
  dispatch<&cpu::gather_rows_backward, &cuda::gather_rows_backward>(stream, args);
}

}  // namespace plenum::kernels
