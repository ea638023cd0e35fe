#include "plenum/tensor/cuda_graph.h"

#include <memory>
#include <type_traits>

#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_fill_node.h"

namespace plenum::tensor {

namespace {

using RecordedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, decltype(&cudaGraphDestroy)>;

RecordedGraph record(const CudaStream& stream, const std::function<void()>& work) {
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
  return {graph, &cudaGraphDestroy};
}

}  // namespace

CudaGraph::CudaGraph(const CudaStream& stream, const std::function<void()>& work) {
  const RecordedGraph graph = record(stream, work);
  fill_by_kernels(graph.get());
  check_cuda(cudaGraphGetNodes(graph.get(), nullptr, &num_nodes_), "count the nodes of a recording");
  check_cuda(cudaGraphInstantiate(&handle_, graph.get(), 0), "prepare a recording");
}

CudaGraph::~CudaGraph() {
  cudaGraphExecDestroy(handle_);
}

void CudaGraph::start(const CudaStream& stream) const {
  check_cuda(cudaGraphLaunch(handle_, stream.handle()), "start a recording");
}

}  // namespace plenum::tensor
