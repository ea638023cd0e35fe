#include "plenum/base/check.h"

#include "bench/gpu/profile/kernel_records.h"

// Stands for kernel_records.cpp in a build without CUPTI.

namespace plenum::bench {

bool can_record_kernels() {
  return false;
}

void begin_kernel_records() {
  base::fail("kernels cannot be timed: this was built without CUPTI; install it with the CUDA toolkit");
}

std::vector<KernelRecord> end_kernel_records() {
  begin_kernel_records();
  return {};
}

}  // namespace plenum::bench
