#pragma once

#include "plenum/model/pass.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

// Heads read few rows of the last layer's output: those of masked tokens and, with the next-sentence
// objective, the first of every sequence. What no head reads has no gradient. So the last layer's attention
// gathers these R rows, and everything behind it works on them alone.

/// Copies the rows that heads read: masked tokens', then the first ones.
void gather_read_rows(const Pass& pass, const tensor::ConstTensorView& x_TD, const tensor::TensorView& y_RD);

/// Overwrites dx_TD with their gradient, zero in all other rows. A row that two heads read has the sum.
void scatter_read_rows(const Pass& pass, const tensor::ConstTensorView& dy_RD,
                       const tensor::TensorView& dx_TD);

/// The part of the rows that a head reads.
template <typename View>
View masked_rows_of(const Pass& pass, const View& x_RD) {
  return x_RD.first_rows(pass.num_masked());
}
template <typename View>
View first_rows_of(const Pass& pass, const View& x_RD) {
  return x_RD.rows(pass.num_masked(), pass.num_labelled());
}

}  // namespace plenum::model
