#include "plenum/plan/strategy_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plenum/describe/tensor_parallel.h"

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

/// Calls visit(rank, the first of its place that takes as much) for the ranks of the first replica.
template <typename Visit>
void for_each_rank(const Strategy& strategy, const describe::ModelDescription& model, Visit visit) {
  for (std::size_t place = 0; place < strategy.depth; ++place) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> first_of_size;
    for (std::size_t slice = 0; slice < strategy.slices; ++slice) {
      const std::size_t rank = place * strategy.slices + slice;
      visit(rank, first_of_size.try_emplace(size_of_slice(model, slice, strategy.slices), rank).first->second);
    }
  }
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
  for_each_rank(strategy, model, [&](std::size_t rank, std::size_t first_alike) {
    arenas.push_back(rank == first_alike ? rank_arena(seen(strategy, schedule), model, strategy.slices,
                                                      request, Rank::at(rank))
                                         : arenas[first_alike]);
  });
  return arenas;
}

StrategyMemory strategy_memory(const Strategy& strategy, const describe::ModelDescription& model,
                               const AbridgedSchedule& schedule, const MemorySetting& setting) {
  StrategyMemory memory{.processes = setting.processes};
  for (const tensor::MemoryLayout& arena : rank_arenas(strategy, model, schedule, setting))
    memory.rank_bytes.push_back(arena.num_bytes());
  const auto most = std::ranges::max_element(memory.rank_bytes);
  memory.peak_rank = static_cast<std::size_t>(most - memory.rank_bytes.begin());

  const memory::MemoryRequest request = memory_request(strategy, setting.capacity, setting.num_threads);
  const auto report_of = [&](std::vector<ProcessShare::Ranks> ranks, std::size_t num_replicas) {
    const std::size_t num_micro_batches = schedule.whole.problem.num_micro_batches / strategy.replicas;
    return process_memory(seen(strategy, schedule), model, strategy.slices, request,
                          {.ranks = std::move(ranks),
                           .has_all_ranks = setting.processes == Processes::One,
                           .num_micro_batches = num_micro_batches * num_replicas,
                           .evaluated = setting.evaluated,
                           .largest = setting.largest,
                           .outside_bytes = setting.outside_bytes});
  };
  if (setting.processes == Processes::One) {
    std::map<std::size_t, std::size_t> count_of;
    for_each_rank(strategy, model,
                  [&](std::size_t, std::size_t first_alike) { count_of[first_alike] += strategy.replicas; });
    std::vector<ProcessShare::Ranks> ranks;
    for (const auto& [rank, count] : count_of) ranks.push_back({.rank = Rank::at(rank), .count = count});
    memory.peak = report_of(std::move(ranks), strategy.replicas);
    memory.total_bytes = memory.peak_bytes();
    return memory;
  }
  memory.peak = report_of({{.rank = Rank::at(memory.peak_rank)}}, 1);
  // What a process has beside the arena of its rank is the same in all.
  const std::size_t beside = memory.peak_bytes() - *most;
  for (const std::size_t bytes : memory.rank_bytes) memory.total_bytes += (bytes + beside) * strategy.replicas;
  return memory;
}

}  // namespace plenum::plan
