#include "bench/gpu/profile/kernel_records.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "plenum/base/check.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::bench {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{8} << 20;
constexpr std::align_val_t kBufferAlignment{8};
constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMSET};

void check_cupti(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* reason = nullptr;
  cuptiGetResultString(result, &reason);
  base::fail("CUPTI could not {}: {}", what, reason != nullptr ? reason : "unknown");
}

/// What was recorded. CUPTI calls functions without an argument of ours, from a thread of its own.
struct Recording {
  std::mutex mutex;
  std::vector<KernelRecord> records;
};
Recording& recording() {
  static Recording the_one;
  return the_one;
}

void add(std::vector<KernelRecord>& records, const CUpti_Activity* activity) {
  using Kind = KernelRecord::Kind;
  // Later versions of these structures begin with the same members.
  if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(activity);
    records.push_back({.kind = Kind::Kernel,
                       .name = kernel->name != nullptr ? kernel->name : "",
                       .begin_ns = kernel->start,
                       .end_ns = kernel->end});
  } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy5*>(activity);
    records.push_back(
        {.kind = Kind::Copy, .begin_ns = copy->start, .end_ns = copy->end, .num_bytes = copy->bytes});
  } else if (activity->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(activity);
    records.push_back(
        {.kind = Kind::Fill, .begin_ns = fill->start, .end_ns = fill->end, .num_bytes = fill->bytes});
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* num_bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(::operator new(kBufferBytes, kBufferAlignment));
  *num_bytes = kBufferBytes;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                          std::size_t /*num_bytes*/, std::size_t num_valid_bytes) {
  {
    const std::lock_guard lock(recording().mutex);
    CUpti_Activity* activity = nullptr;
    while (cuptiActivityGetNextRecord(buffer, num_valid_bytes, &activity) == CUPTI_SUCCESS) {
      add(recording().records, activity);
    }
  }
  ::operator delete(buffer, kBufferAlignment);
}

}  // namespace

bool can_record_kernels() {
  return true;
}

void begin_kernel_records() {
  recording().records.clear();
  check_cupti(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "take buffers");
  for (const CUpti_ActivityKind kind : kKinds) check_cupti(cuptiActivityEnable(kind), "begin to record");
}

std::vector<KernelRecord> end_kernel_records() {
  tensor::check_cuda(cudaDeviceSynchronize(), "wait for the GPU");
  for (const CUpti_ActivityKind kind : kKinds) check_cupti(cuptiActivityDisable(kind), "end a recording");
  check_cupti(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "give what it recorded");
  const std::lock_guard lock(recording().mutex);
  std::vector<KernelRecord> records = std::move(recording().records);
  std::ranges::sort(records, {}, &KernelRecord::begin_ns);
  return records;
}

}  // namespace plenum::bench
