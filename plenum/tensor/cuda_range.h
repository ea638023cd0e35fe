#pragma once

#include <string>

#include "plenum/base/function_ref.h"

namespace plenum::tensor {

/// Whether a profiler of NVIDIA's, such as Nsight Systems, watches this process. Never in a build without
/// CUDA.
bool is_profiled();

/// Names what this thread does from here to its end, in a profiler's timeline (NVTX, domain "plenum"). Where
/// none watches nothing is asked and nothing done. Ranges of a thread nest.
class CudaRange {
 public:
  explicit CudaRange(base::FunctionRef<std::string()> name) : is_on_(is_profiled()) {
    if (is_on_) begin(name());
  }
  ~CudaRange() {
    if (is_on_) end();
  }
  CudaRange(const CudaRange&) = delete;
  CudaRange& operator=(const CudaRange&) = delete;

 private:
  static void begin(const std::string& name);
  static void end() noexcept;

  bool is_on_;
};

}  // namespace plenum::tensor
