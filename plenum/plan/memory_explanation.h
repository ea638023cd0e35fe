#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/plan/search.h"
#include "plenum/tensor/memory_layout.h"

namespace plenum::plan {

/// Where the arenas of a strategy's ranks have their bytes, and whether a pipeline takes more than the same
/// ranks would as replicas.
struct MemoryExplanation {
  struct RankMemory {
    std::size_t first_layer = 0;  ///< of its first stage
    std::size_t num_layers = 0;   ///< of all its stages
    std::size_t num_alive = 0;    ///< micro-batches that it keeps at a time, over its stages
    tensor::MemoryLayout arena;
  };
  std::vector<RankMemory> ranks;  ///< of the first replica
  std::size_t most = 0;           ///< the first rank with the largest arena
  std::size_t total_bytes = 0;    ///< arenas of all ranks of the run

  /// Of a pipeline: the arenas of as many ranks without one, with micro-batches as large; nothing where that
  /// is no run.
  std::optional<std::size_t> without_pipeline_bytes = {};
  std::size_t word_table_bytes = 0;  ///< with gradient and state: what first and last stage both hold
  /// Layers of stages with which a pipeline takes clearly less over all ranks, the least of those that were
  /// tried: with fewer on the first stage, on the last, or on both.
  struct Cut {
    std::vector<std::int64_t> stage_layers;
    std::size_t total_bytes = 0;
    std::size_t most_bytes = 0;  ///< of a rank
  };
  std::optional<Cut> better_cut = {};
};

MemoryExplanation explain_memory(const Candidate& candidate, const StrategyRequest& request,
                                 const StepSampler& sampler, const Cluster& cluster);

}  // namespace plenum::plan
