#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plenum::base {

/// What the running machine offers. Empty or 0 means that it could not be found out.
struct Machine {
  std::string cpu_model;
  std::vector<std::string>
      cpu_features;      ///< the vector extensions that kernels may use: avx2, fma, avx512f …
  int usable_cores = 0;  ///< cores this process may run on (affinity and container limits counted)
  std::uint64_t memory_bytes = 0;
  std::uint64_t available_memory_bytes = 0;  ///< what could still be taken (container limits counted)
  std::string nvidia_driver;                 ///< version text of the loaded kernel driver
};

Machine inspect_machine();

/// The number of cores this process may run on: what `--threads` defaults to.
int usable_cores();

/// The memory that this process could still take without others being swapped or it being killed: of the
/// machine, or of its container where that allows less. 0 if it could not be found out.
std::uint64_t available_memory_bytes();

/// The most memory this process has had at a time, as the kernel counts it. 0 if it could not be found out.
std::uint64_t peak_memory_bytes();

}  // namespace plenum::base
