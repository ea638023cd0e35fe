#include "plenum/comm/mpi/staging.h"

#include <algorithm>

namespace plenum::comm::mpi {
namespace {

constexpr std::size_t kMostPieceBytes = 256 * 1024;
constexpr std::size_t kLeastPieceBytes = 16 * 1024;
constexpr std::size_t kMostBytes = 8 * 1024 * 1024;
/// Of every element, so that pieces hold whole ones.
constexpr std::size_t kAlignment = 64;

}  // namespace

std::size_t Staging::piece_bytes(std::size_t num_members) {
  const std::size_t share = kMostBytes / (kDepth * num_members) / kAlignment * kAlignment;
  return std::clamp(share, kLeastPieceBytes, kMostPieceBytes);
}

std::byte* Staging::pieces(std::size_t num_members) {
  if (!bytes_) {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(kDepth * num_members * piece_bytes(num_members));
  }
  return bytes_.get();
}

}  // namespace plenum::comm::mpi
