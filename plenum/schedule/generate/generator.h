#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// What to generate. Ranks are counted replica by replica: rank = replica * depth + position. Replica r works
/// on micro-batches [r * num_micro_batches, (r + 1) * num_micro_batches).
struct GeneratorOptions {
  std::size_t depth = 1;              ///< ranks of one replica's pipeline
  std::size_t num_micro_batches = 1;  ///< of one replica
  std::size_t num_replicas = 1;
  std::vector<std::uint16_t> stage_layers =
      {};                       ///< of each stage; one entry stands for all (interleaved: or of each rank)
  std::size_t num_chunks = 2;   ///< interleaved: stages on a rank
  std::size_t num_buckets = 1;  ///< parts of a stage whose gradients are reduced apart
  Recomputation recomputation = Recomputation::None;
  Sharding sharding = Sharding::None;
  bool has_tied_parameters = false;
  std::vector<std::uint32_t> micro_batch_sizes = {};  ///< of the global batch; empty when all are alike
};

struct Generator {
  std::string_view name;
  std::string_view summary;
  Schedule (*generate)(const GeneratorOptions& options);
  /// Whether stages lie on a row of ranks; else every rank holds the whole model and depth is 1.
  bool is_pipeline;
};

/// single, data-parallel, gpipe, 1f1b, interleaved, chimera, zb-h1.
std::span<const Generator> all_generators();

/// Throws UserError that names the nearest known one.
const Generator& generator_named(std::string_view name);

}  // namespace plenum::schedule
