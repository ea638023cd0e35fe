#include "plenum/calibrate/argument_room.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/philox.h"
#include "plenum/tensor/bfloat16.h"

namespace plenum::calibrate {
namespace {

using tensor::TensorView;

constexpr std::size_t kPatternSize = std::size_t{1} << 16;

/// In [-1, 1).
std::vector<float> random_pattern() {
  const base::RandomFunction random(0, base::Purpose::Initialisation);
  std::vector<float> values(kPatternSize);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(2 * base::to_unit_interval(random(i)) - 1);
  }
  return values;
}

}  // namespace

TensorView ArgumentRoom::output(tensor::DType dtype, const tensor::Shape& shape) {
  const tensor::Block block = layout_.add("arguments", dtype, shape);
  if (!arena_) return {nullptr, dtype, shape};
  base::check(layout_.num_bytes() <= arena_->num_bytes(),
              "arguments need more room than was planned: {} of {}", layout_.num_bytes(),
              arena_->num_bytes());
  return arena_->view(block);
}

template <typename Element>
void ArgumentRoom::repeat(const std::vector<Element>& pattern, const TensorView& view) {
  const std::int64_t size = view.num_elements();
  auto* const data = view.data<Element>();
  std::int64_t filled = std::min(size, static_cast<std::int64_t>(pattern.size()));
  tensor::copy(*stream_, tensor::ConstTensorView(pattern.data(), {filled}), {data, {filled}});
  for (; filled < size; filled = std::min(size, 2 * filled)) {
    const std::int64_t count = std::min(filled, size - filled);
    tensor::copy(*stream_, tensor::ConstTensorView(data, {count}), {data + filled, {count}});
  }
  stream_->wait();
}

TensorView ArgumentRoom::random(tensor::DType dtype, const tensor::Shape& shape) {
  const TensorView view = output(dtype, shape);
  if (!arena_ || shape.num_elements() == 0) return view;
  static const std::vector<float> pattern = random_pattern();
  if (dtype == tensor::DType::Float32) {
    repeat(pattern, view);
  } else {
    std::vector<tensor::BFloat16> rounded;
    for (const float value : pattern) rounded.push_back(tensor::to_bfloat16(value));
    repeat(rounded, view);
  }
  return view;
}

TensorView ArgumentRoom::random_squares(const tensor::Shape& shape) {
  const TensorView view = output(tensor::DType::Float32, shape);
  if (!arena_ || shape.num_elements() == 0) return view;
  std::vector<float> squares = random_pattern();
  for (float& value : squares) value *= value;
  repeat(squares, view);
  return view;
}

}  // namespace plenum::calibrate
