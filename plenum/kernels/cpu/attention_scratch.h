#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plenum/kernels/cpu/dropout.h"
#include "plenum/kernels/cpu/gemm.h"

namespace plenum::kernels::cpu {

/// Rows of queries whose scores are in the cache at one time.
inline constexpr std::int64_t kQueryBlock = 128;

/// What a thread needs for a block of queries of a sequence: scores, and in backward their gradients, each
/// with rows that are whole groups of dropout's channels, and the random bytes of as many.
class AttentionScratch {
 public:
  AttentionScratch(std::span<std::byte> memory, std::int64_t length)
      : stride_(stride_for(length)),
        weights_(reinterpret_cast<float*>(memory.data())),
        gradients_(weights_ + kQueryBlock * stride_),
        products_(gradients_ + kQueryBlock * stride_),
        bytes_(reinterpret_cast<std::uint8_t*>(products_ + kQueryBlock)),
        gemm_(memory.subspan(num_bytes(length) - gemm_scratch_bytes(), gemm_scratch_bytes())) {}

  static std::size_t num_bytes(std::int64_t length) {
    const auto block = static_cast<std::size_t>(kQueryBlock * stride_for(length));
    return (2 * block + kQueryBlock) * sizeof(float) + block + gemm_scratch_bytes();
  }

  /// Of the rows of everything here.
  std::int64_t stride() const { return stride_; }
  float* weights() const { return weights_; }      ///< [kQueryBlock, stride]
  float* gradients() const { return gradients_; }  ///< [kQueryBlock, stride]
  float* products() const { return products_; }    ///< [kQueryBlock]
  std::uint8_t* bytes() const { return bytes_; }   ///< [kQueryBlock, stride]
  std::span<std::byte> gemm() const { return gemm_; }

 private:
  static constexpr std::int64_t stride_for(std::int64_t length) {
    return (length + kDropoutGroup - 1) / kDropoutGroup * kDropoutGroup;
  }

  std::int64_t stride_;
  float* weights_;
  float* gradients_;
  float* products_;
  std::uint8_t* bytes_;
  std::span<std::byte> gemm_;
};

}  // namespace plenum::kernels::cpu
