#include "plenum/comm/nccl/host_staging.h"

#include <cstring>

#include "plenum/base/check.h"

namespace plenum::comm::nccl {

void HostStaging::reserve(std::unique_ptr<Room>& room, std::size_t num_bytes) {
  if (num_bytes == 0 || (room && room->device.num_bytes() >= num_bytes)) return;
  room.reset();
  room = std::make_unique<Room>(num_bytes);
}

void HostStaging::enter(std::size_t in_bytes, std::size_t out_bytes) {
  base::check(!is_taken_, "one operation at a time goes by way of the GPU's memory");
  reserve(in_, in_bytes);
  reserve(out_, out_bytes);
  is_taken_ = true;
}

void HostStaging::bring(const std::byte* from, std::size_t num_bytes) {
  if (num_bytes == 0) return;
  std::memcpy(in_->host.data(), from, num_bytes);
  tensor::copy_cuda(stream_, in_->host.data(), in_->device.data(), num_bytes);
}

void HostStaging::fetch(std::size_t num_bytes) {
  if (num_bytes > 0) tensor::copy_cuda(stream_, out_->device.data(), out_->host.data(), num_bytes);
}

}  // namespace plenum::comm::nccl
