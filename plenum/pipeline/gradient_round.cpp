#include "plenum/pipeline/gradient_round.h"

#include <algorithm>
#include <functional>
#include <span>

namespace plenum::pipeline {

void add_gradient_round(const describe::ParameterTable& table, const describe::ParameterShard::Bucket& bucket,
                        const tensor::ConstTensorView& round, kernels::Accumulate accumulate,
                        const tensor::TensorView& sum) {
  // Between tensors lies what other buckets left there.
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::int64_t begin = std::max(parameter.begin, bucket.own.begin);
    const std::int64_t end = std::min(parameter.end(), bucket.own.end);
    if (begin >= end) continue;
    const auto first = static_cast<std::size_t>(begin - bucket.own.begin);
    const auto count = static_cast<std::size_t>(end - begin);
    const std::span<const float> from = round.span<float>().subspan(first, count);
    const std::span<float> to = sum.span<float>().subspan(first, count);
    if (accumulate == kernels::Accumulate::No) {
      std::ranges::copy(from, to.begin());
    } else {
      std::ranges::transform(from, to, to.begin(), std::plus<>());
    }
  }
}

}  // namespace plenum::pipeline
