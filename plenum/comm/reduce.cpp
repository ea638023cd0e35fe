#include "plenum/comm/reduce.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "plenum/base/check.h"
#include "plenum/tensor/bfloat16.h"

namespace plenum::comm {
namespace {

/// The running sums of a block stay in the first cache while all sources pass by.
constexpr std::size_t kBlockBytes = 4096;

/// Two sources at a time, so that sums are loaded and stored half as often; each element's order is the same.
template <typename Element>
void sum_block(std::span<const std::byte* const> sources, std::size_t begin, std::size_t count,
               Element* sums) {
  const auto values = [&](std::size_t source) {
    return reinterpret_cast<const Element*>(sources[source] + begin);
  };
  const Element* const first = values(0);
  if (sources.size() == 1) {
    std::memcpy(sums, first, count * sizeof(Element));
    return;
  }
  const Element* const second = values(1);
  for (std::size_t i = 0; i < count; ++i) sums[i] = first[i] + second[i];
  std::size_t source = 2;
  for (; source + 2 <= sources.size(); source += 2) {
    const Element* const one = values(source);
    const Element* const other = values(source + 1);
    for (std::size_t i = 0; i < count; ++i) sums[i] = (sums[i] + one[i]) + other[i];
  }
  if (source == sources.size()) return;
  const Element* const last = values(source);
  for (std::size_t i = 0; i < count; ++i) sums[i] += last[i];
}

template <typename Element>
void reduce_as(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
               std::size_t num_bytes) {
  alignas(64) std::array<Element, kBlockBytes / sizeof(Element)> block;
  for (std::size_t begin = 0; begin < num_bytes; begin += kBlockBytes) {
    const std::size_t size = std::min(kBlockBytes, num_bytes - begin);
    sum_block(sources, begin, size / sizeof(Element), block.data());
    for (std::byte* destination : destinations) std::memcpy(destination + begin, block.data(), size);
  }
}

/// Sums in float32, in the order of the sources, and rounds once.
void reduce_bfloat16(std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                     std::size_t num_bytes) {
  using tensor::BFloat16;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(float);
  alignas(64) std::array<float, kBlock> sums;
  alignas(64) std::array<BFloat16, kBlock> rounded;
  const std::size_t num_elements = num_bytes / sizeof(BFloat16);
  for (std::size_t begin = 0; begin < num_elements; begin += kBlock) {
    const std::size_t count = std::min(kBlock, num_elements - begin);
    const auto values = [&](std::size_t source) {
      return reinterpret_cast<const BFloat16*>(sources[source]) + begin;
    };
    std::transform(values(0), values(0) + count, sums.begin(), tensor::to_float);
    for (std::size_t source = 1; source < sources.size(); ++source) {
      for (std::size_t i = 0; i < count; ++i) sums[i] += tensor::to_float(values(source)[i]);
    }
    std::transform(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(count), rounded.begin(),
                   tensor::to_bfloat16);
    for (std::byte* destination : destinations) {
      std::memcpy(destination + begin * sizeof(BFloat16), rounded.data(), count * sizeof(BFloat16));
    }
  }
}

}  // namespace

bool can_reduce(tensor::DType dtype) {
  return dtype != tensor::DType::Byte;
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
    case tensor::DType::BFloat16:
      return reduce_bfloat16(sources, destinations, num_bytes);
    case tensor::DType::Byte:
      base::check(false, "elements of type {} are not summed on the host", tensor::dtype_name(dtype));
  }
}

}  // namespace plenum::comm
