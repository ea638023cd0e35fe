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
  std::vector<std::uint16_t> stage_layers = {};  ///< of each stage; one entry stands for all
  std::size_t num_chunks = 2;                    ///< stages on a rank, where the generator has chunks
  std::size_t num_buckets = 1;                   ///< parts of a stage whose gradients are reduced apart
  Recomputation recomputation = Recomputation::None;
  Sharding sharding = Sharding::None;
  bool has_tied_parameters = false;
  bool has_tied_halves = false;
  bool has_tensor_norms = false;
  std::vector<std::uint32_t> micro_batch_sizes = {};  ///< of the global batch; empty when all are alike
};

/// What ranks a generator can lay a step out over.
enum class Mesh : std::uint8_t {
  OneRank,   ///< depth and num_replicas are 1
  Replicas,  ///< every rank holds the whole model: depth is 1
  Pipeline,  ///< stages lie on a row of `depth` ranks, in num_replicas copies
};

/// A row of the table of generators: all that the program and its tests know about one.
struct Generator {
  std::string_view name;
  std::string_view summary;
  Schedule (*generate)(const GeneratorOptions& options);
  Mesh mesh = Mesh::Pipeline;
  std::size_t depth_multiple = 1;  ///< what the depth must be a multiple of
  bool has_chunks = false;         ///< a rank holds num_chunks stages
  bool splits_backward = false;    ///< into input and weight gradient

  bool is_pipeline() const { return mesh == Mesh::Pipeline; }
  std::size_t num_stages(const GeneratorOptions& options) const {
    return options.depth * (has_chunks ? options.num_chunks : 1);
  }
};

std::span<const Generator> all_generators();

/// Throws UserError that names the nearest known one.
const Generator& generator_named(std::string_view name);

/// The layers of every stage from those of every rank of a pipeline, which are divided over its chunks as
/// evenly as can be; stage = chunk * depth + position. Throws UserError if a rank has fewer layers than
/// chunks.
std::vector<std::uint16_t> divide_over_chunks(std::span<const std::uint16_t> rank_layers,
                                              std::size_t num_chunks);

}  // namespace plenum::schedule
