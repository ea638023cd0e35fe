#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_fill_node.h"

namespace plenum::tensor {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // what is larger takes longer than any pause

__global__ void __launch_bounds__(kThreads)
    fill_words(std::uint32_t* words, std::uint32_t value, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) words[i] = value;
}

/// A fill as words of four bytes.
struct WordFill {
  std::uint32_t* words = nullptr;
  std::uint32_t value = 0;
  std::size_t count = 0;  ///< 0 where it is left to CUDA

  explicit WordFill(const cudaMemsetParams& fill) {
    const std::size_t num_bytes = fill.width * fill.elementSize;
    const bool is_of_words = reinterpret_cast<std::uintptr_t>(fill.dst) % sizeof(std::uint32_t) == 0 &&
                             num_bytes % sizeof(std::uint32_t) == 0;
    if (fill.height > 1 || num_bytes > kMostBytes || !is_of_words) return;
    const std::uint32_t copies = fill.elementSize == 1   ? 0x01010101U
                                 : fill.elementSize == 2 ? 0x00010001U
                                                         : 1;
    words = static_cast<std::uint32_t*>(fill.dst);
    value = fill.value * copies;
    count = num_bytes / sizeof(std::uint32_t);
  }
};

using Nodes = std::vector<cudaGraphNode_t>;

/// What `list(nodes, &count)` lists; it gives the count alone where nodes are null.
template <typename List>
Nodes nodes_of(const List& list) {
  std::size_t count = 0;
  check_cuda(list(nullptr, &count), "count the nodes of a recording");
  Nodes nodes(count);
  if (count > 0) check_cuda(list(nodes.data(), &count), "list the nodes of a recording");
  return nodes;
}

// CUDA 13 has a parameter more in these: data of edges, of which those of fills have none.
template <typename Node>
Nodes nodes_before(Node node) {
  return nodes_of([&](cudaGraphNode_t* nodes, std::size_t* count) {
    if constexpr (requires { cudaGraphNodeGetDependencies(node, nodes, nullptr, count); }) {
      return cudaGraphNodeGetDependencies(node, nodes, nullptr, count);
    } else {
      return cudaGraphNodeGetDependencies(node, nodes, count);
    }
  });
}
template <typename Node>
Nodes nodes_behind(Node node) {
  return nodes_of([&](cudaGraphNode_t* nodes, std::size_t* count) {
    if constexpr (requires { cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count); }) {
      return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count);
    } else {
      return cudaGraphNodeGetDependentNodes(node, nodes, count);
    }
  });
}
template <typename Graph>
cudaError_t add_edge(Graph graph, cudaGraphNode_t from, cudaGraphNode_t to) {
  if constexpr (requires { cudaGraphAddDependencies(graph, &from, &to, nullptr, std::size_t{1}); }) {
    return cudaGraphAddDependencies(graph, &from, &to, nullptr, 1);
  } else {
    return cudaGraphAddDependencies(graph, &from, &to, 1);
  }
}

/// Puts a kernel in the place of a fill.
void replace(cudaGraph_t graph, cudaGraphNode_t node, WordFill fill) {
  const Nodes before = nodes_before(node);
  const Nodes behind = nodes_behind(node);
  void* arguments[] = {&fill.words, &fill.value, &fill.count};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(fill_words);
  kernel.gridDim = dim3(static_cast<unsigned>((fill.count + kThreads - 1) / kThreads));
  kernel.blockDim = dim3(kThreads);
  kernel.kernelParams = arguments;
  cudaGraphNode_t added = nullptr;
  check_cuda(cudaGraphAddKernelNode(&added, graph, before.data(), before.size(), &kernel), "add a fill");
  for (cudaGraphNode_t next : behind) check_cuda(add_edge(graph, added, next), "order a fill");
  check_cuda(cudaGraphDestroyNode(node), "remove a fill");
}

}  // namespace

void fill_by_kernels(CUgraph_st* graph) {
  const Nodes nodes = nodes_of(
      [&](cudaGraphNode_t* list, std::size_t* count) { return cudaGraphGetNodes(graph, list, count); });
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    check_cuda(cudaGraphNodeGetType(node, &type), "look at a recording");
    if (type != cudaGraphNodeTypeMemset) continue;
    cudaMemsetParams parameters{};
    check_cuda(cudaGraphMemsetNodeGetParams(node, &parameters), "look at a fill");
    const WordFill fill(parameters);
    if (fill.count > 0) replace(graph, node, fill);
  }
}

}  // namespace plenum::tensor
