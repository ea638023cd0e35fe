#pragma once

#include "plenum/model/pass.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

// Heads read few rows of the last layer's output: those that the objectives have labels for. What no head
// reads has no gradient. So the last layer's attention gathers these R rows, and everything behind it works
// on them alone.

/// Copies the rows that heads read, one objective's after the other's.
void gather_read_rows(const Pass& pass, const tensor::ConstTensorView& x_TD, const tensor::TensorView& y_RD);

/// Overwrites dx_TD with their gradient, zero in all other rows. A row that two heads read has the sum.
void scatter_read_rows(const Pass& pass, const tensor::ConstTensorView& dy_RD,
                       const tensor::TensorView& dx_TD);

/// The part of these rows that one objective reads.
template <typename View>
View rows_of_objective(const Pass& pass, const View& x_RD, std::size_t objective) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < objective; ++i) first += pass.num_labels(i);
  return x_RD.rows(first, pass.num_labels(objective));
}

/// Which tokens they are of.
inline kernels::RowIdentities identities_of_objective(const Pass& pass, std::size_t objective) {
  const kernels::RowIdentities all = pass.read_rows();
  return {.sample_T = rows_of_objective(pass, all.sample_T, objective),
          .position_T = rows_of_objective(pass, all.position_T, objective)};
}

}  // namespace plenum::model
