#include "plenum/tensor/cuda_graph.h"

#include "plenum/tensor/cuda_check.h"

namespace plenum::tensor {

CudaGraph::CudaGraph(const CudaStream& stream, const std::function<void()>& work) {
  // Other threads, which prepare data, may go on calling CUDA.
  check_cuda(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal), "begin a recording");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream.handle(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream.handle(), &graph), "end a recording");
  const cudaError_t result = cudaGraphInstantiate(&handle_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(result, "prepare a recording");
}

CudaGraph::~CudaGraph() {
  cudaGraphExecDestroy(handle_);
}

void CudaGraph::start(const CudaStream& stream) const {
  check_cuda(cudaGraphLaunch(handle_, stream.handle()), "start a recording");
}

}  // namespace plenum::tensor
