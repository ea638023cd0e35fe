#include "plenum/model/read_rows.h"

#include "plenum/kernels/rows.h"
#include "plenum/tensor/copy.h"

namespace plenum::model {

using tensor::ConstTensorView;
using tensor::TensorView;

void gather_read_rows(const Pass& pass, const ConstTensorView& x_TD, const TensorView& y_RD) {
  for (std::size_t i = 0; i < pass.model.num_row_lists(); ++i) {
    if (pass.num_labels(i) == 0) continue;
    kernels::gather_rows_forward(pass.stream, {.x_TD = x_TD,
                                               .index_M = pass.micro_batch.objectives[i].row_M,
                                               .y_MD = rows_of_objective(pass, y_RD, i)});
  }
}

void scatter_read_rows(const Pass& pass, const ConstTensorView& dy_RD, const TensorView& dx_TD) {
  tensor::set_zero(pass.stream, dx_TD);
  for (std::size_t i = 0; i < pass.model.heads.size(); ++i) {
    if (pass.num_labels(i) == 0) continue;
    kernels::gather_rows_backward(pass.stream, {.dy_MD = rows_of_objective(pass, dy_RD, i),
                                                .index_M = pass.micro_batch.objectives[i].row_M,
                                                .dx_TD = dx_TD});
  }
}

}  // namespace plenum::model
