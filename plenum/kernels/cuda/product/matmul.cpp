#include "plenum/kernels/cuda/product/matmul.h"

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/product/matmul_choices.h"
#include "plenum/kernels/cuda/product/matmul_tuner.h"
#include "plenum/kernels/cuda/product/plain_matmul.h"

namespace plenum::kernels::cuda {
namespace {

/// What is larger would take a thousand times as long as the library does, and nobody would know why.
constexpr std::int64_t kMostPlainTerms = std::int64_t{1} << 32;

MatmulTuner& tuner(const tensor::Stream& stream) {
  return stream.cuda().state<MatmulTuner>();
}

}  // namespace

void matmul(const tensor::Stream& stream, const Matmul& product) {
  Matmul args = product;
  if (stream.cuda().partition()) args.num_multiprocessors = stream.cuda().num_multiprocessors();
  base::check(
      args.bias == nullptr || (args.accumulate == Accumulate::No && args.c_dtype == tensor::DType::BFloat16),
      "a product with a bias overwrites bf16, not {}", dtype_name(args.c_dtype));
  base::check(args.num_products == 1 || args.bias == nullptr, "several products at once have no bias");
  check_scratch(stream, matmul_scratch_bytes());
  if (args.num_products == 0 || args.m == 0 || args.n == 0) return;
  // The library takes no empty sums.
  if (args.k != 0 && tuner(stream).run(stream, args)) return;
  base::check(args.num_products * args.m * args.n * args.k < kMostPlainTerms,
              "cuBLASLt refuses a product: {}x{}x{}", args.m, args.n, args.k);
  plain_matmul(stream, args);
}

MatmulChoices matmul_choices(const tensor::Stream& stream) {
  return tuner(stream).choices();
}

bool use_matmul_choices(const tensor::Stream& stream, const MatmulChoices& choices) {
  return tuner(stream).use(choices);
}

}  // namespace plenum::kernels::cuda
