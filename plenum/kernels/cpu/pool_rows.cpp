#include "plenum/kernels/cpu/pool_rows.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace plenum::kernels::cpu {
namespace {

void scale(std::span<float> y_D, float factor) {
  for (float& value : y_D) value *= factor;
}

void divide_by_length(std::span<float> y_D) {
  double squares = 0;
  for (const float value : y_D) squares += double{value} * double{value};
  scale(y_D, 1 / std::max(static_cast<float>(std::sqrt(squares)), kLeastPooledLength));
}

}  // namespace

void pool_rows(const tensor::Stream& stream, const PoolRows& args) {
  const auto group_R = args.group_R.span<std::int32_t>();
  const auto width = static_cast<std::size_t>(args.x_RD.size(1));
  const float* const x_RD = args.x_RD.data<float>();
  float* const y_SD = args.y_SD.data<float>();
  const auto in_order = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::uint32_t>(a) < static_cast<std::uint32_t>(b);  // -1 is behind all others
  };
  stream.pool().run(static_cast<std::size_t>(args.y_SD.size(0)), [&](std::size_t s, std::size_t) {
    const auto [begin, end] =
        std::equal_range(group_R.begin(), group_R.end(), static_cast<std::int32_t>(s), in_order);
    const std::span<float> y_D(y_SD + s * width, width);
    std::ranges::fill(y_D, 0.0F);
    for (auto row = begin; row != end; ++row) {
      const float* const x_D = x_RD + static_cast<std::size_t>(row - group_R.begin()) * width;
      for (std::size_t i = 0; i < width; ++i) y_D[i] += x_D[i];
    }
    scale(y_D, 1 / static_cast<float>(end - begin));
    if (args.unit_length == UnitLength::Yes) divide_by_length(y_D);
  });
}

}  // namespace plenum::kernels::cpu
