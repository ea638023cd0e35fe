#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/tensor/device.h"

namespace plenum::workspace {

// Of matrix products.

// How kernels of the CPU cut a product: what is packed of both factors, whatever the processor.
inline constexpr std::int64_t kGemmDepth = 256;    ///< of a sum that is taken at a time
inline constexpr std::int64_t kGemmColumns = 768;  ///< of B that are packed at a time
inline constexpr std::int64_t kGemmRows = 128;     ///< of A that are packed at a time, at most
/// What a product needs on each thread of the CPU.
constexpr std::size_t gemm_scratch_bytes() {
  return static_cast<std::size_t>(kGemmDepth * (kGemmColumns + kGemmRows)) * sizeof(float);
}

inline constexpr std::size_t kMatmulWorkspaceBytes = std::size_t{32} << 20;  ///< of the GPU's library
/// Of a trial of algorithms, beside the library's workspace and the room for what is accumulated.
inline constexpr std::size_t kMatmulTrialBytes = 1024;
/// What a product needs on the GPU: the library's workspace and room to measure a product that accumulates
/// into up to so many bytes. One that accumulates into more is not measured.
constexpr std::size_t matmul_scratch_bytes(std::size_t accumulated_bytes = 0) {
  return kMatmulWorkspaceBytes + kMatmulTrialBytes + accumulated_bytes;
}

/// Scratch that any linear op needs, on the CPU each thread.
std::size_t linear_scratch_bytes(tensor::Device device);

/// How many rows of du a kernel for Hopper sums before it writes the sums.
inline constexpr std::int64_t kRowsOfGeluSums = 128;
constexpr std::int64_t num_gelu_block_sums(std::int64_t num_rows) {
  return (num_rows + kRowsOfGeluSums - 1) / kRowsOfGeluSums;
}
constexpr std::size_t gelu_block_sums_bytes(std::int64_t num_rows, std::int64_t mlp_width) {
  return static_cast<std::size_t>(num_gelu_block_sums(num_rows) * mlp_width) * sizeof(float);
}

/// Scratch that mlp_gelu's ops need for up to so many rows, on the CPU each thread.
std::size_t mlp_gelu_scratch_bytes(tensor::Device device, std::int64_t num_rows, std::int64_t mlp_width);

/// Words of a tile of the CPU: of the 512 positions that are worked on at a time its logits take 1 MB, which
/// stay in a second-level cache.
inline constexpr std::int64_t kVocabularyTile = 512;
/// The number of tiles into which a vocabulary is cut; none on the GPU.
std::int64_t vocabulary_tiles(tensor::Device device, std::int64_t vocabulary);
/// From one row of logits to the next: the GPU's products want rows that begin at even places.
std::int64_t vocabulary_stride(tensor::Device device, std::int64_t vocabulary);
/// Scratch that vocabulary_loss's ops need, on the CPU each thread.
std::size_t vocabulary_loss_scratch_bytes(tensor::Device device);

}  // namespace plenum::workspace
