#include "plenum/plan/strategy_memory.h"

#include <algorithm>
#include <map>
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

/// Where ranks of a pipeline wait for each other decides what they keep, so all that run are looked at; where
/// they divide a stage, all that do.
const schedule::Schedule& seen(const Strategy& strategy, const AbridgedSchedule& schedule) {
  return strategy.depth > 1 ? schedule.written : schedule.whole;
}

using Alike = ProcessShare::Ranks;

/// Replicas with shards of one size. Shards differ by how elements are rounded, and only the replicas that
/// are written out are at hand: for a size that none of these has stands the next larger one, or the largest.
std::vector<Alike> alike_replicas(const describe::ParameterTable& table, const AbridgedSchedule& schedule) {
  const describe::ParameterShard shard = memory::schedule_shard(table, schedule.whole, schedule::Rank::at(0));
  std::vector<std::size_t> sizes(schedule.whole.ranks.size());
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets())
    for (std::size_t replica = 0; replica < sizes.size(); ++replica) sizes[replica] += bucket.counts[replica];
  std::map<std::size_t, Alike> written;
  for (std::size_t replica = 0; replica < schedule.written.ranks.size(); ++replica)
    written.try_emplace(sizes[replica], Alike{.rank = Rank::at(replica), .count = 0});
  for (const std::size_t size : sizes) {
    const auto next = written.lower_bound(size);
    ++(next == written.end() ? written.rbegin()->second : next->second).count;
  }
  std::vector<Alike> replicas;
  for (const auto& [size, alike] : written)
    if (alike.count > 0) replicas.push_back(alike);
  return replicas;
}

/// Every rank that is written out, where they divide work on matrices and no two have the same. Replicas that
/// are left out count as the last of them.
std::vector<Alike> written_ranks(const Strategy& strategy, const AbridgedSchedule& schedule) {
  const std::size_t num_written = schedule.written.ranks.size();
  std::vector<Alike> ranks;
  for (std::size_t rank = 0; rank < num_written; ++rank) {
    const bool is_last = rank + strategy.depth >= num_written;
    const std::size_t num_others = is_last ? strategy.replicas - num_written / strategy.depth : 0;
    ranks.push_back({.rank = Rank::at(rank), .count = 1 + num_others});
  }
  return ranks;
}

/// The ranks of the run, those that take as much as each other as one: slices of a place that are of one
/// size, in all replicas; where these divide an update, those with shards of one size.
std::vector<Alike> alike_ranks(const Strategy& strategy, const describe::ModelDescription& model,
                               const AbridgedSchedule& schedule) {
  const bool is_sharded = strategy.sharding != schedule::Sharding::None && strategy.replicas > 1;
  if (strategy.matrices.kind != schedule::Preconditioner::None) return written_ranks(strategy, schedule);
  std::vector<Alike> ranks;
  for (std::size_t place = 0; place < strategy.depth; ++place) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::size_t, std::size_t>> slices;
    for (std::size_t slice = 0; slice < strategy.slices; ++slice) {
      auto& [first, count] =
          slices.try_emplace(size_of_slice(model, slice, strategy.slices), slice, 0).first->second;
      ++count;
    }
    for (const auto& [size, alike] : slices) {
      const auto [slice, count] = alike;
      const std::size_t of_first = place * strategy.slices + slice;
      if (!is_sharded) {
        ranks.push_back({.rank = Rank::at(of_first), .count = count * strategy.replicas});
        continue;
      }
      const describe::ParameterTable table(
          describe::tensor_parallel_slice(model, {.index = slice, .size = strategy.slices}),
          memory::held_layers(schedule.whole, schedule::Rank::at(0)));
      for (Alike& alike_shards : alike_replicas(table, schedule)) {
        const std::size_t rank = alike_shards.rank.index() * strategy.slices + of_first;
        ranks.push_back({.rank = Rank::at(rank), .count = count * alike_shards.count});
      }
    }
  }
  return ranks;
}

}  // namespace

memory::MemoryRequest memory_request(const Strategy& strategy, const batch::Capacity& capacity,
                                     std::size_t num_threads) {
  return {.capacity = capacity,
          .device = strategy.device,
          .precision = tensor::precision_of(strategy.device),
          .num_threads = num_threads,
          .reduce_dtype = strategy.num_ranks() > 1 ? strategy.reduce_dtype : tensor::DType::Float32,
          .kfac_averages = strategy.matrices.kfac_averages,
          .layer_update = layer_update_of(strategy.matrices.kind),
          .soap_limit = strategy.matrices.soap_limit};
}

Processes processes_of(const Cluster& cluster, std::size_t num_ranks) {
  const bool is_one = cluster.kind == tensor::Device::Cpu && num_ranks <= cluster.devices_per_node;
  return is_one ? Processes::One : Processes::EachRank;
}

std::vector<tensor::MemoryLayout> rank_arenas(const Strategy& strategy,
                                              const describe::ModelDescription& model,
                                              const AbridgedSchedule& schedule,
                                              const MemorySetting& setting) {
  const memory::MemoryRequest request = memory_request(strategy, setting.capacity, setting.num_threads);
  std::vector<tensor::MemoryLayout> arenas;
  for (std::size_t place = 0; place < strategy.depth; ++place) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> first_of_size;
    for (std::size_t slice = 0; slice < strategy.slices; ++slice) {
      const std::size_t rank = place * strategy.slices + slice;
      const auto [known, is_new] =
          first_of_size.try_emplace(size_of_slice(model, slice, strategy.slices), rank);
      arenas.push_back(
          is_new ? rank_arena(seen(strategy, schedule), model, strategy.slices, request, Rank::at(rank))
                 : arenas[known->second]);
    }
  }
  return arenas;
}

StrategyMemory strategy_memory(const Strategy& strategy, const describe::ModelDescription& model,
                               const AbridgedSchedule& schedule, const MemorySetting& setting) {
  StrategyMemory memory{.processes = setting.processes};
  const memory::MemoryRequest request = memory_request(strategy, setting.capacity, setting.num_threads);
  const std::size_t num_micro_batches = schedule.whole.problem.num_micro_batches;
  const std::vector<Alike> alike = alike_ranks(strategy, model, schedule);
  const auto report_of = [&](std::vector<Alike> ranks, std::size_t num_made) {
    return process_memory(seen(strategy, schedule), model, strategy.slices, request,
                          {.ranks = std::move(ranks),
                           .has_all_ranks = setting.processes == Processes::One,
                           .num_micro_batches = num_made,
                           .evaluated = setting.evaluated,
                           .largest = setting.largest,
                           .known_outside_bytes = setting.known_outside_bytes});
  };
  if (setting.processes == Processes::One) {
    memory.peak = report_of(alike, num_micro_batches);
    memory.total_bytes = memory.peak_bytes();
    return memory;
  }
  for (const auto& [rank, count] : alike) {
    MemoryReport report = report_of({{.rank = rank}}, num_micro_batches / strategy.replicas);
    memory.total_bytes += count * report.most_bytes();
    if (!memory.peak.lines.empty() && report.planned_bytes <= memory.peak.planned_bytes) continue;
    memory.peak_rank = rank.index();
    memory.peak = std::move(report);
  }
  return memory;
}

}  // namespace plenum::plan
