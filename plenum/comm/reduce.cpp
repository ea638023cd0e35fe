#include "plenum/comm/reduce.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "plenum/base/check.h"

namespace plenum::comm {
namespace {

/// The running sums of a block stay in the first cache while all sources pass by.
constexpr std::size_t kBlockBytes = 4096;

template <typename Element>
void reduce_as(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
               std::size_t num_bytes) {
  std::array<Element, kBlockBytes / sizeof(Element)> block;
  for (std::size_t begin = 0; begin < num_bytes; begin += kBlockBytes) {
    const std::size_t size = std::min(kBlockBytes, num_bytes - begin);
    const std::size_t count = size / sizeof(Element);
    std::memcpy(block.data(), sources.front() + begin, size);
    for (const std::byte* source : sources.subspan(1)) {
      const auto* values = reinterpret_cast<const Element*>(source + begin);
      for (std::size_t i = 0; i < count; ++i) block[i] += values[i];
    }
    for (std::byte* destination : destinations) std::memcpy(destination + begin, block.data(), size);
  }
}

}  // namespace

bool can_reduce(tensor::DType dtype) {
  return dtype != tensor::DType::Byte && dtype != tensor::DType::BFloat16;
}

void reduce(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
            std::size_t num_bytes, tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::Float32:
      return reduce_as<float>(sources, destinations, num_bytes);
    case tensor::DType::Float64:
      return reduce_as<double>(sources, destinations, num_bytes);
    case tensor::DType::Int64:
      return reduce_as<std::int64_t>(sources, destinations, num_bytes);
    case tensor::DType::Int32:
      return reduce_as<std::int32_t>(sources, destinations, num_bytes);
    case tensor::DType::Byte:
    case tensor::DType::BFloat16:
      base::check(false, "elements of type {} are not summed on the host", tensor::dtype_name(dtype));
  }
}

}  // namespace plenum::comm
