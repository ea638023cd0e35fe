#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/describe/model_description.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/strategy.h"

namespace plenum::plan {

/// What strategies have in common, since it is the user's to choose.
struct StrategyRequest {
  describe::ModelDescription model;  ///< the whole one
  std::size_t num_ranks = 1;
  UpdateRule update = UpdateRule::AdamW;
  MatrixWork matrices = {};  ///< bubbles are filled where there is a pipeline
  tensor::DType reduce_dtype = tensor::DType::Float32;
  std::optional<batch::Capacity> evaluated = {};  ///< of what is held out; nothing where none is
};

/// Which values are tried of what has many.
struct StrategyGrid {
  std::vector<std::int64_t> micro_batch_tokens = {1024,  2048,  4096,   8192,  16384,
                                                  32768, 65536, 131072, 262144};
  std::vector<std::int64_t> micro_batches_per_place = {1, 2, 4, 8};  ///< of a pipeline
  std::optional<std::int64_t> micro_batches = {};  ///< of a replica, where nothing else is to be tried
  std::vector<std::int64_t> bucket_bytes = {kBucketBytes, 4 * kBucketBytes, 16 * kBucketBytes};
  std::vector<std::size_t> chunks = {2, 3, 4};
};

/// A strategy with what its steps keep to, and the layers of its stages.
struct Candidate {
  Strategy strategy;
  StepLimits limits;
  std::vector<std::uint16_t> stage_begins;  ///< first layer of each stage, and the end
  std::size_t num_buckets = 1;              ///< of a stage
};

/// Every strategy over so many ranks that train would accept, within the grid, each once: what differs in
/// name alone is left out.
std::vector<Candidate> enumerate(const StrategyRequest& request, const StrategyGrid& grid,
                                 const StepSampler& sampler, const Cluster& cluster);

}  // namespace plenum::plan
