#pragma once

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/dropout.h"

namespace plenum::kernels {

/// Throws InternalError if dropout is on and rows have no identities.
inline void check_row_identities(const Dropout& dropout, const RowIdentities& rows, std::int64_t num_rows) {
  base::check(dropout.threshold < 256, "dropout's threshold is of 256: {}", dropout.threshold);
  if (!dropout.is_on()) return;
  check_argument("rows.sample_T", rows.sample_T, tensor::DType::Int64, {num_rows});
  check_argument("rows.position_T", rows.position_T, tensor::DType::Int32, {num_rows});
}

}  // namespace plenum::kernels
