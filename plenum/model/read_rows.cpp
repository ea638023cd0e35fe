#include "plenum/model/read_rows.h"

#include "plenum/kernels/rows.h"
#include "plenum/tensor/copy.h"

namespace plenum::model {

using tensor::ConstTensorView;
using tensor::TensorView;

void gather_read_rows(const Pass& pass, const ConstTensorView& x_TD, const TensorView& y_RD) {
  const MicroBatchViews& micro_batch = pass.micro_batch;
  if (pass.num_masked() > 0) {
    kernels::gather_rows_forward(
        pass.stream, {.x_TD = x_TD, .index_M = micro_batch.masked_row_M, .y_MD = masked_rows_of(pass, y_RD)});
  }
  if (pass.num_labelled() > 0) {
    kernels::gather_rows_forward(
        pass.stream, {.x_TD = x_TD, .index_M = micro_batch.start_S, .y_MD = first_rows_of(pass, y_RD)});
  }
}

void scatter_read_rows(const Pass& pass, const ConstTensorView& dy_RD, const TensorView& dx_TD) {
  const MicroBatchViews& micro_batch = pass.micro_batch;
  tensor::set_zero(pass.stream, dx_TD);
  if (pass.num_masked() > 0) {
    kernels::gather_rows_backward(
        pass.stream,
        {.dy_MD = masked_rows_of(pass, dy_RD), .index_M = micro_batch.masked_row_M, .dx_TD = dx_TD});
  }
  if (pass.num_labelled() > 0) {
    kernels::gather_rows_backward(
        pass.stream, {.dy_MD = first_rows_of(pass, dy_RD), .index_M = micro_batch.start_S, .dx_TD = dx_TD});
  }
}

}  // namespace plenum::model
