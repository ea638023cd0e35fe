#include "plenum/plan/strategy_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/schedule_shard.h"

namespace plenum::plan {
namespace {

using base::Rank;

memory::LayerUpdate layer_update_of(schedule::Preconditioner preconditioner) {
  if (preconditioner == schedule::Preconditioner::Muon) return memory::LayerUpdate::Muon;
  return preconditioner == schedule::Preconditioner::Shampoo ? memory::LayerUpdate::Soap
                                                             : memory::LayerUpdate::AsOthers;
}

/// What tells the slices of a model apart by size: words and inner width are not always divided evenly.
std::pair<std::int64_t, std::int64_t> size_of_slice(const describe::ModelDescription& model,
                                                    std::size_t index, std::size_t num_slices) {
  const describe::ModelDescription slice =
      describe::tensor_parallel_slice(model, {.index = index, .size = num_slices});
  return {slice.embedding.words.num_rows, slice.layers.front().mlp.in.out_width};
}

/// The weights of the whole model, which a CPU's process puts together, with what is on the way meanwhile: a
/// layer or a bucket at a time.
std::size_t bytes_of_whole_weights(const Strategy& strategy, const describe::ModelDescription& model,
                                   const schedule::Schedule& whole) {
  const bool is_sharded = strategy.sharding == schedule::Sharding::Parameters && strategy.num_places() > 1;
  if (strategy.depth * strategy.slices == 1 && !is_sharded) return 0;
  const describe::ParameterTable table(model);
  std::int64_t most = 0;
  if (is_sharded) {
    for (const describe::ParameterShard::Bucket& bucket :
         memory::schedule_shard(table, whole, Rank::at(0)).buckets())
      most = std::max(most, bucket.elements.end - bucket.elements.begin);
  } else {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const auto elements = table.elements_of_layers(base::LayerId::at(i), base::LayerId::at(i + 1));
      most = std::max(most, elements.end - elements.begin);
    }
  }
  return static_cast<std::size_t>(table.num_elements() + most) * sizeof(float);
}

}  // namespace

memory::MemoryRequest memory_request(const Strategy& strategy, const batch::Capacity& capacity,
                                     std::size_t num_threads) {
  return {.capacity = capacity,
          .device = strategy.device,
          .precision = tensor::precision_of(strategy.device),
          .num_threads = num_threads,
          .reduce_dtype = strategy.num_ranks() > 1 ? strategy.reduce_dtype : tensor::DType::Float32,
          .layer_update = layer_update_of(strategy.preconditioner)};
}

StrategyMemory strategy_memory(const Strategy& strategy, const describe::ModelDescription& model,
                               const AbridgedSchedule& schedule, const batch::Capacity& capacity,
                               std::size_t num_threads) {
  // Where ranks of a pipeline wait for each other decides what they keep, so all that run are looked at;
  // where they divide a stage, all that do.
  const schedule::Schedule& seen = strategy.depth > 1 ? schedule.written : schedule.whole;
  const memory::MemoryRequest request = memory_request(strategy, capacity, num_threads);
  const std::size_t whole_weights =
      strategy.device == tensor::Device::Cpu ? bytes_of_whole_weights(strategy, model, schedule.whole) : 0;
  StrategyMemory memory;
  for (std::size_t place = 0; place < strategy.depth; ++place) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> bytes_by_slice;
    for (std::size_t slice = 0; slice < strategy.slices; ++slice) {
      const std::size_t rank = place * strategy.slices + slice;
      const auto size = size_of_slice(model, slice, strategy.slices);
      if (const auto known = bytes_by_slice.find(size); known != bytes_by_slice.end()) {
        memory.rank_bytes.push_back(known->second);
        continue;
      }
      MemoryReport report =
          process_memory(seen, model, strategy.slices, request,
                         {.ranks = {Rank::at(rank)},
                          .num_micro_batches = schedule.whole.problem.num_micro_batches / strategy.replicas});
      if (whole_weights > 0) add_line("whole weights", whole_weights, report);
      bytes_by_slice[size] = report.planned_bytes;
      memory.rank_bytes.push_back(report.planned_bytes);
      if (memory.peak.lines.empty() || report.planned_bytes > memory.peak.planned_bytes) {
        memory.peak_rank = rank;
        memory.peak = std::move(report);
      }
    }
  }
  for (const std::size_t bytes : memory.rank_bytes) memory.total_bytes += bytes * strategy.replicas;
  return memory;
}

}  // namespace plenum::plan
