#include "plenum/kernels/second_moment.h"

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/second_moment.h"
#include "plenum/kernels/cuda/product/second_moment.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void add_second_moment(const tensor::Stream& stream, const AddSecondMoment& args) {
  base::check(args.x_TW.shape().num_dims() == 2 && args.moment_DD.shape().num_dims() == 2,
              "a second moment is a matrix of one");
  const std::int64_t D = args.moment_DD.size(0);
  check_argument("x_TW", args.x_TW, stream.precision().of(tensor::Role::Activation), args.x_TW.shape());
  check_argument("moment_DD", args.moment_DD, {D, D});
  base::check(args.first_column >= 0 && args.first_column + D <= args.x_TW.size(1), "columns {} to {} of {}",
              args.first_column, args.first_column + D, args.x_TW.size(1));
  std::int64_t end = 0;
  for (const RowRange& range : args.rows) {
    base::check(range.begin >= end && range.end >= range.begin && range.end <= args.x_TW.size(0),
                "rows must increase within the matrix: [{}, {}) after {} of {}", range.begin, range.end, end,
                args.x_TW.size(0));
    end = range.end;
  }
  dispatch<&cpu::add_second_moment, &cuda::add_second_moment>(stream, args);
}

}  // namespace plenum::kernels
