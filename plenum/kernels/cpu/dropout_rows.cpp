#include "plenum/kernels/cpu/dropout_rows.h"

#include <algorithm>

#include "plenum/kernels/cpu/row_dropout.h"
#include "plenum/kernels/cpu/row_tasks.h"

namespace plenum::kernels::cpu {

void dropout_rows(const tensor::Stream& stream, const DropoutRows& args) {
  const std::int64_t width = args.x_TD.size(1);
  const RowDropout dropout(args.dropout, args.rows, width);
  const float* const x_TD = args.x_TD.data<float>();
  float* const y_TD = args.y_TD.data<float>();
  for_each_row(stream, args.x_TD.size(0), [&](std::int64_t row, std::size_t thread) {
    const float* const x = x_TD + row * width;
    float* const y = y_TD + row * width;
    if (dropout.is_on()) {
      dropout.apply(row, x, y, RowDropout::buffer(stream, thread));
    } else if (x != y) {
      std::copy(x, x + width, y);
    }
  });
}

}  // namespace plenum::kernels::cpu
