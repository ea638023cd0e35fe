#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/cuda_memory.h"

namespace plenum::bench {

/// Four matrices of the same size, filled with normally distributed numbers, and scratch. The power that a
/// product needs depends on the digits, so zeros would be too fast.
class ProductBuffers {
 public:
  ProductBuffers(const tensor::CudaStream& queue, std::size_t num_elements)
      : num_elements_(num_elements),
        scratch_bytes_(kernels::cuda::matmul_scratch_bytes(num_elements * sizeof(tensor::BFloat16))),
        arena_(kCount * num_elements * sizeof(tensor::BFloat16) + scratch_bytes_, tensor::Device::Cuda) {
    const base::RandomFunction random(1, base::Purpose::Initialisation);
    std::vector<tensor::BFloat16> values(std::size_t{1} << 22);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - base::to_unit_interval(random(2 * i))));
      const double angle = 2 * std::numbers::pi * base::to_unit_interval(random(2 * i + 1));
      values[i] = tensor::to_bfloat16(static_cast<float>(radius * std::cos(angle)));
    }
    for (std::size_t begin = 0; begin < kCount * num_elements; begin += values.size()) {
      const std::size_t count = std::min(values.size(), kCount * num_elements - begin);
      tensor::copy_cuda(queue, values.data(), at(0) + begin, count * sizeof(tensor::BFloat16));
    }
    queue.wait();
  }

  /// One of four.
  tensor::BFloat16* at(std::size_t index) const {
    const auto size = static_cast<std::int64_t>(kCount * num_elements_);
    return arena_.view({.offset = 0, .dtype = tensor::DType::BFloat16, .shape = {size}})
               .data<tensor::BFloat16>() +
           index * num_elements_;
  }
  std::span<std::byte> scratch() const {
    return arena_
        .view({.offset = kCount * num_elements_ * sizeof(tensor::BFloat16),
               .dtype = tensor::DType::Byte,
               .shape = {static_cast<std::int64_t>(scratch_bytes_)}})
        .span<std::byte>();
  }

 private:
  static constexpr std::size_t kCount = 4;
  std::size_t num_elements_;
  std::size_t scratch_bytes_;
  tensor::Arena arena_;
};

struct Product {
  std::string name;
  kernels::cuda::Matmul args;

  double num_flops() const {
    return 2 * static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
  }
};

/// The products of an encoder layer of width D, and F = 4 D, on T tokens, as linear.cpp asks for them in a
/// step's only micro-batch.
inline std::vector<Product> layer_products(const ProductBuffers& buffers, std::int64_t T, std::int64_t D) {
  using kernels::Accumulate;
  std::vector<Product> products;
  const auto add_map = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    products.push_back({name + " forward",
                        {.m = T,
                         .n = out,
                         .k = in,
                         .a = {.data = buffers.at(0), .stride = in},
                         .b = {.data = buffers.at(1), .stride = in, .is_transposed = true},
                         .c = buffers.at(2),
                         .c_stride = out,
                         .bias = buffers.at(1)}});
    // Beside these goes the residual.
    const bool is_added = name == "qkv" || name == "mlp1";
    products.push_back({name + " dx",
                        {.m = T,
                         .n = in,
                         .k = out,
                         .a = {.data = buffers.at(0), .stride = out},
                         .b = {.data = buffers.at(1), .stride = in},
                         .c = buffers.at(2),
                         .c_stride = in,
                         .accumulate = is_added ? Accumulate::Yes : Accumulate::No}});
    products.push_back({name + " dw",
                        {.m = out,
                         .n = in,
                         .k = T,
                         .a = {.data = buffers.at(0), .stride = out, .is_transposed = true},
                         .b = {.data = buffers.at(1), .stride = in},
                         .c = buffers.at(2),
                         .c_dtype = tensor::DType::Float32,
                         .c_stride = in}});
  };
  add_map("qkv", D, 3 * D);
  add_map("out", D, D);
  add_map("mlp1", D, 4 * D);
  add_map("mlp2", 4 * D, D);
  return products;
}

}  // namespace plenum::bench
