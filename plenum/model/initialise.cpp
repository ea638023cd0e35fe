#include "plenum/model/initialise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "plenum/base/check.h"
#include "plenum/base/philox.h"
#include "plenum/io/checksum.h"

namespace plenum::model {
namespace {

using describe::Parameter;
using describe::ParameterKind;

/// Elements of a task; a multiple of what one draw of 128 bits gives.
constexpr std::int64_t kBlock = 1 << 16;
constexpr std::int64_t kPerDraw = 4;

/// Two independent normal numbers from 64 random bits, by Box and Muller.
std::array<double, 2> normal_pair(std::uint32_t a, std::uint32_t b) {
  constexpr double kUnit = 0x1.0p-32;
  const double radius = std::sqrt(-2 * std::log((a + 0.5) * kUnit));
  const double angle = 2 * std::numbers::pi * (b + 0.5) * kUnit;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// The normal numbers of one tensor.
class NormalTensor {
 public:
  NormalTensor(std::uint64_t seed, const std::string& name, double deviation)
      : random_(seed, base::Purpose::Initialisation),
        identity_(io::checksum(name) >> 16),  // the 48 bits of a sample
        deviation_(deviation) {}

  /// Elements [begin, end) of the tensor.
  void fill(std::int64_t begin, std::int64_t end, float* to) const {
    for (std::int64_t at = begin; at < end;) {
      const auto draw = static_cast<std::uint64_t>(at / kPerDraw);
      const base::PhiloxCounter bits =
          random_(identity_, static_cast<std::uint32_t>(draw), 0, static_cast<std::uint32_t>(draw >> 32));
      const std::array<double, 2> first = normal_pair(bits[0], bits[1]);
      const std::array<double, 2> second = normal_pair(bits[2], bits[3]);
      const std::array<double, kPerDraw> values = {first[0], first[1], second[0], second[1]};
      const std::int64_t end_of_draw = std::min(at / kPerDraw * kPerDraw + kPerDraw, end);
      for (; at < end_of_draw; ++at) {
        *to++ = static_cast<float>(deviation_ * values[static_cast<std::size_t>(at % kPerDraw)]);
      }
    }
  }

 private:
  base::RandomFunction random_;
  std::uint64_t identity_;
  double deviation_;
};

/// What a rank holds of a tensor: each element has the number that it has in the whole.
void fill_slice(const Parameter& parameter, const NormalTensor& normal, base::ThreadPool& pool,
                float* tensor) {
  const std::int64_t width = parameter.shape.num_dims() > 1 ? parameter.shape[1] : 1;
  for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
    pool.run(static_cast<std::size_t>((count + kBlock - 1) / kBlock), [&](std::size_t block, std::size_t) {
      const std::int64_t begin = static_cast<std::int64_t>(block) * kBlock;
      const std::int64_t end = std::min(begin + kBlock, count);
      normal.fill(first + begin, first + end, tensor + own + begin);
    });
    if (!parameter.zero_row) return;
    const std::int64_t row = *parameter.zero_row * width - first;
    if (row >= 0 && row < count) std::fill_n(tensor + own + row, width, 0.0F);
  });
}

}  // namespace

void initialise_weights(const describe::ParameterTable& table, std::uint64_t seed, base::ThreadPool& pool,
                        tensor::TensorView weights_N) {
  base::check(weights_N.shape() == tensor::Shape{table.num_elements()}, "weights must have shape [{}]: {}",
              table.num_elements(), to_string(weights_N.shape()));
  float* const weights = weights_N.data<float>();
  std::int64_t end = 0;
  for (const Parameter& parameter : table.parameters()) {
    std::fill(weights + end, weights + parameter.begin, 0.0F);
    end = parameter.end();
    float* const tensor = weights + parameter.begin;
    if (parameter.deviation == 0) {
      std::fill(tensor, weights + end, parameter.kind == ParameterKind::NormWeight ? 1.0F : 0.0F);
      continue;
    }
    fill_slice(parameter, NormalTensor(seed, parameter.name, parameter.deviation), pool, tensor);
  }
  std::fill(weights + end, weights + table.num_elements(), 0.0F);
}

}  // namespace plenum::model
