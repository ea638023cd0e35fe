#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plenum/tensor/arena.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/stream.h"

namespace plenum::bench {

/// Tensors on the GPU, random or given.
class DeviceTensors {
 public:
  explicit DeviceTensors(const tensor::Stream& stream) : stream_(stream) {}

  /// Numbers between `least` and `greatest`.
  tensor::TensorView random(tensor::DType dtype, const tensor::Shape& shape, float least = -1,
                            float greatest = 1) {
    const tensor::TensorView view = add(dtype, shape);
    const auto size = static_cast<std::size_t>(shape.num_elements());
    const auto drawn = [&] { return least + (greatest - least) * next(); };
    if (dtype == tensor::DType::Float32) {
      upload(random_values<float>(size, drawn).data(), view);
    } else {
      upload(random_values<tensor::BFloat16>(size, [&] { return tensor::to_bfloat16(drawn()); }).data(),
             view);
    }
    return view;
  }
  template <typename Element>
  tensor::TensorView given(const std::vector<Element>& values) {
    return given(values, {static_cast<std::int64_t>(values.size())});
  }
  template <typename Element>
  tensor::TensorView given(const std::vector<Element>& values, const tensor::Shape& shape) {
    const tensor::TensorView view = add(tensor::kDTypeOf<Element>, shape);
    upload(values.data(), view);
    return view;
  }

 private:
  tensor::TensorView add(tensor::DType dtype, const tensor::Shape& shape) {
    const auto bytes = static_cast<std::size_t>(shape.num_elements()) * tensor::size_of(dtype);
    arenas_.push_back(std::make_unique<tensor::Arena>(bytes, tensor::Device::Cuda));
    return arenas_.back()->view({.offset = 0, .dtype = dtype, .shape = shape});
  }
  void upload(const void* values, const tensor::TensorView& view) {
    tensor::copy(stream_, tensor::ConstTensorView(values, view.dtype(), view.shape()), view);
    stream_.wait();
  }
  /// Draws the first of them and repeats these: enough that no two rows are alike.
  template <typename Element, typename Draw>
  std::vector<Element> random_values(std::size_t size, Draw draw) {
    constexpr std::size_t kDrawn = 4'000'037;
    std::vector<Element> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = i < kDrawn ? draw() : values[i - kDrawn];
    return values;
  }
  /// Between 0 and 1.
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(state_ >> 40) * 0x1.0p-24F;
  }

  const tensor::Stream& stream_;
  std::vector<std::unique_ptr<tensor::Arena>> arenas_;
  std::uint64_t state_ = 1;
};

/// All bytes of an arena.
inline std::span<std::byte> bytes_of(const tensor::Arena& arena) {
  const auto size = static_cast<std::int64_t>(arena.num_bytes());
  return arena.view({.offset = 0, .dtype = tensor::DType::Byte, .shape = {size}}).span<std::byte>();
}

}  // namespace plenum::bench
