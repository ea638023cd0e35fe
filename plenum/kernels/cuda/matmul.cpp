#include "plenum/kernels/cuda/matmul.h"

#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cuda/matmul_choices.h"
#include "plenum/kernels/cuda/matmul_tuner.h"
#include "plenum/kernels/cuda/plain_matmul.h"

namespace plenum::kernels::cuda {
namespace {

MatmulTuner& tuner(const tensor::Stream& stream) {
  return stream.cuda().state<MatmulTuner>();
}

}  // namespace

void matmul(const tensor::Stream& stream, const Matmul& args) {
  const MatmulEpilogue& epilogue = args.epilogue;
  const bool has_epilogue = epilogue.bias != nullptr || epilogue.gelu != nullptr;
  base::check(!has_epilogue || (args.accumulate == Accumulate::No && args.c_dtype == tensor::DType::BFloat16),
              "a product with an epilogue overwrites bf16, not {}", dtype_name(args.c_dtype));
  check_scratch(stream, matmul_scratch_bytes());
  if (args.m == 0 || args.n == 0) return;
  // The library takes no empty sums.
  if (args.k == 0 || !tuner(stream).run(stream, args)) plain_matmul(stream, args);
}

std::size_t matmul_scratch_bytes(std::size_t accumulated_bytes) {
  return MatmulTuner::kWorkspaceBytes + accumulated_bytes;
}

MatmulChoices matmul_choices(const tensor::Stream& stream) {
  return tuner(stream).choices();
}

bool use_matmul_choices(const tensor::Stream& stream, const MatmulChoices& choices) {
  return tuner(stream).use(choices);
}

}  // namespace plenum::kernels::cuda
