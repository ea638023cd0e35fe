#pragma once

#include <cstddef>
#include <memory>
#include <vector>

// What CUgreenCtx and cudaStream_t point to.
struct CUgreenCtx_st;
struct CUstream_st;

namespace plenum::tensor {

/// A part of the GPU's multiprocessors, on which the streams of one rank run beside those of the other parts
/// (CUDA calls it a green context). Memory, its bandwidth and power are everybody's.
class CudaPartition {
 public:
  /// So many parts of as many multiprocessors each; a few may be left over. Throws UserError where the GPU or
  /// its driver cannot.
  static std::vector<std::shared_ptr<const CudaPartition>> split(std::size_t count);
  ~CudaPartition();
  CudaPartition(const CudaPartition&) = delete;
  CudaPartition& operator=(const CudaPartition&) = delete;

  int num_multiprocessors() const { return handles_.num_multiprocessors; }
  /// A stream whose kernels run here, for the caller to own. Of several that have work, those of the lowest
  /// number go first, as CUDA counts priorities.
  CUstream_st* make_stream(int priority) const;

 private:
  struct Handles {
    CUgreenCtx_st* context = nullptr;
    int num_multiprocessors = 0;
  };
  explicit CudaPartition(Handles handles);

  Handles handles_;
};

}  // namespace plenum::tensor
