#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/batch/micro_batch_cut.h"
#include "plenum/plan/gradient_buckets.h"
#include "plenum/plan/matrix_work.h"
#include "plenum/plan/step_costs.h"
#include "plenum/schedule/core/recomputation.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/core/sharding.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/dtype.h"

namespace plenum::plan {

/// How a run is laid out over ranks: everything that decides what a step does on which rank, beside model and
/// data.
struct Strategy {
  std::size_t replicas = 1;                ///< of the model: data parallelism
  std::size_t slices = 1;                  ///< ranks that divide every layer: tensor parallelism
  std::size_t depth = 1;                   ///< of a replica's pipeline
  std::string pipeline = "1f1b";           ///< the schedule of a pipeline, by its generator's name
  std::size_t chunks = 2;                  ///< stages on a rank, where the generator has several
  std::vector<std::int64_t> stage_layers;  ///< of every stage; balanced by operations if empty
  batch::MicroBatchCut micro_batches;
  schedule::Sharding sharding = schedule::Sharding::None;
  schedule::Recomputation recomputation = schedule::Recomputation::None;
  std::int64_t bucket_bytes = kBucketBytes;
  UpdateRule update = UpdateRule::AdamW;
  MatrixWork matrices = {};
  tensor::DType reduce_dtype = tensor::DType::Float32;  ///< in which gradients travel between ranks
  tensor::Device device = tensor::Device::Cpu;

  std::size_t num_ranks() const { return replicas * slices * depth; }
  /// Ranks that a schedule has: the slices of a place are one.
  std::size_t num_places() const { return replicas * depth; }
  /// In which an element of the gradient travels.
  std::size_t reduced_bytes() const { return tensor::size_of(reduce_dtype); }

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// Why no run can be laid out so, whatever its model is, in the words of train's options; nothing if it can.
std::optional<std::string> reason_against(const Strategy& strategy);

/// "dp 8 x tp 2 x pp 4, 1f1b, 16 micro-batches, recompute full".
std::string strategy_text(const Strategy& strategy);

}  // namespace plenum::plan
