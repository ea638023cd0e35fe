#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plenum::bench {

/// Something that ran on the GPU.
struct KernelRecord {
  enum class Kind { Kernel, Copy, Fill };

  Kind kind = Kind::Kernel;
  std::string name = {};  ///< of a kernel, as the compiler mangles it
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t num_bytes = 0;  ///< of a copy or a fill
};

/// Whether this build can record: it was made with CUPTI, which is part of the CUDA toolkit.
bool can_record_kernels();

/// Records everything that the GPU does from now on. One recording at a time.
void begin_kernel_records();

/// Waits for the GPU, ends the recording and returns it in the order in which things began.
std::vector<KernelRecord> end_kernel_records();

}  // namespace plenum::bench
