#include "plenum/kernels/newton_schulz.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/cpu/newton_schulz.h"
#include "plenum/kernels/cuda/product/newton_schulz.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {

void newton_schulz(const tensor::Stream& stream, const NewtonSchulz& args) {
  if (args.num_matrices == 0 || args.rows == 0 || args.columns == 0) return;
  const std::int64_t size = args.rows * args.columns;
  base::check(args.num_matrices == 1 || args.stride >= size, "matrices of {} elements lie {} apart", size,
              args.stride);
  const tensor::DType dtype = stream.precision().of(tensor::Role::Weight);
  const tensor::Shape extent{(args.num_matrices - 1) * args.stride + size};
  const std::int64_t K = std::min(args.rows, args.columns);
  check_argument("x", args.x, dtype, extent);
  check_argument("y", args.y, dtype, extent);
  check_argument("squares_2BKK", args.squares_2BKK, dtype, {2, args.num_matrices, K, K});
  dispatch<&cpu::newton_schulz, &cuda::newton_schulz>(stream, args);
}

}  // namespace plenum::kernels
