#pragma once

// What cudaGraph_t points to.
struct CUgraph_st;

namespace plenum::tensor {

/// Lets kernels do a graph's small fills. Between two kernels a fill that CUDA does by its own means costs
/// several microseconds of pause, a kernel half of one (docs/decisions/cuda.md).
void fill_by_kernels(CUgraph_st* graph);

}  // namespace plenum::tensor
