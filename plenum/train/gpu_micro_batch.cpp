#include "plenum/train/gpu_micro_batch.h"

#include <algorithm>

namespace plenum::train {

std::int64_t gpu_micro_batch_tokens(const tensor::CudaDeviceInfo& gpu, std::int64_t least,
                                    const std::function<std::uint64_t(std::int64_t)>& planned_bytes) {
  constexpr std::int64_t kTokensOfMultiprocessor = 512;
  const std::uint64_t allowed_bytes = gpu.total_bytes / 5 * 4;
  std::int64_t tokens = std::max(gpu.num_multiprocessors * kTokensOfMultiprocessor, least);
  while (tokens / 2 >= least && planned_bytes(tokens) > allowed_bytes) tokens /= 2;
  return tokens;
}

}  // namespace plenum::train
