#pragma once

#include <cstddef>
#include <functional>

#include "plenum/tensor/cuda_stream.h"

// What cudaGraphExec_t points to.
struct CUgraphExec_st;

namespace plenum::tensor {

/// Work for a GPU's queue, recorded once and started at once as often as it is wanted: the queue gets one
/// entry in place of hundreds. Addresses, shapes and plain numbers are those of the recording; what lies in
/// memory may change.
class CudaGraph {
 public:
  /// Records what `work` puts into the stream, which does not run it now. `work` must neither wait nor read
  /// what it computes.
  CudaGraph(const CudaStream& stream, const std::function<void()>& work);
  /// It may still run: CUDA lets go of it when that is done.
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void start(const CudaStream& stream) const;
  /// Kernels, copies and fills: it takes memory for each.
  std::size_t num_nodes() const { return num_nodes_; }

 private:
  std::size_t num_nodes_ = 0;
  CUgraphExec_st* handle_ = nullptr;
};

}  // namespace plenum::tensor
