#include "plenum/plan/process_memory.h"

#include <algorithm>
#include <cmath>

#include "plenum/batch/micro_batch_bytes.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/forward_memory.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/plan/distinct_words.h"

namespace plenum::plan {
namespace {

using base::LayerId;
using base::Rank;

schedule::Rank place_of(Rank rank, std::size_t num_slices) {
  return schedule::Rank::at(rank.index() / num_slices);
}

describe::ParameterTable table_of(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                                  std::size_t num_slices, Rank rank) {
  return {describe::tensor_parallel_slice(model, {.index = rank.index() % num_slices, .size = num_slices}),
          memory::held_layers(schedule, place_of(rank, num_slices))};
}

/// The stacks of the ranks' threads as far as they are used, and what the allocator keeps for each.
std::size_t bytes_of_threads(const schedule::Schedule& schedule, std::size_t num_slices,
                             const memory::MemoryRequest& request, const ProcessShare& share) {
  constexpr std::size_t kOfThread = std::size_t{64} << 10;  // 20 kB of stack and as much beside it were seen
  std::size_t num_threads = share.num_ranks() * (request.num_threads - 1);
  for (const auto& [rank, count] : share.ranks) {
    for (const schedule::LaneProgram& lane : schedule.ranks[place_of(rank, num_slices).index()].lanes)
      num_threads += lane.actions().empty() ? 0 : count;
  }
  return num_threads * kOfThread;
}

bool shards_parameters(const schedule::Schedule& schedule) {
  return schedule.problem.sharding == schedule::Sharding::Parameters && schedule.ranks.size() > 1;
}

/// What is on the way while ranks of several processes put the model together: a bucket of all its holders at
/// a time, or a layer of all slices, which the first rank of a replica that has it sends.
std::size_t bytes_on_the_way(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                             std::size_t num_slices) {
  std::vector<std::int64_t> rounds;
  const auto add = [&](std::size_t round, std::int64_t elements) {
    if (rounds.size() <= round) rounds.resize(round + 1);
    rounds[round] += elements;
  };
  for (std::size_t slice = 0; slice < num_slices; ++slice) {
    if (shards_parameters(schedule)) {
      const describe::ParameterTable table = table_of(schedule, model, num_slices, Rank::at(slice));
      const auto shard = memory::schedule_shard(table, schedule, schedule::Rank::at(0));
      for (std::size_t i = 0; i < shard.buckets().size(); ++i)
        add(i, shard.buckets()[i].elements.end - shard.buckets()[i].elements.begin);
      continue;
    }
    std::vector<bool> is_known(model.layers.size());
    for (std::size_t place = 0; place < schedule.ranks.size(); ++place) {
      const describe::ParameterTable table =
          table_of(schedule, model, num_slices, Rank::at(place * num_slices + slice));
      for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        const auto [begin, end] = table.elements_of_layers(LayerId::at(layer), LayerId::at(layer + 1));
        if (is_known[layer] || begin == end) continue;
        is_known[layer] = true;
        add(layer, end - begin);
      }
    }
  }
  return static_cast<std::size_t>(*std::ranges::max_element(rounds)) * sizeof(float);
}

/// Whether ranks hold the model together, so that what needs the whole puts it together.
bool is_put_together(const schedule::Schedule& schedule, std::size_t num_slices) {
  std::size_t num_stages = 0;
  for (const schedule::RankProgram& rank : schedule.ranks)
    for (const schedule::StageId stage : rank.stages) num_stages = std::max(num_stages, stage.index() + 1);
  return num_slices > 1 || schedule.ranks.front().stages.size() < num_stages || shards_parameters(schedule);
}

void add_whole_weights(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                       std::size_t num_slices, const memory::MemoryRequest& request,
                       const ProcessShare& share, MemoryReport& report) {
  if (!is_put_together(schedule, num_slices)) return;
  std::size_t bytes =
      static_cast<std::size_t>(describe::ParameterTable(model).num_elements()) * sizeof(float);
  if (request.device == tensor::Device::Cuda) {
    // They are put together in the host's memory; evaluation has them on the GPU, as products read them, too.
    constexpr std::size_t kComputeShare = 2;
    if (share.evaluated) add_line("whole weights", bytes + bytes / kComputeShare, report);
    return;
  }
  if (!share.has_all_ranks) bytes += bytes_on_the_way(schedule, model, num_slices);
  add_line("whole weights", bytes, report);
}

/// What the system gives of anonymous memory at a time where it can (Arena asks for it).
constexpr std::size_t kPageBytes = std::size_t{2} << 20;

}  // namespace

std::size_t outside_bytes(tensor::Device device, bool has_all_ranks, std::size_t known_bytes) {
  if (device == tensor::Device::Cuda) return known_bytes;
  return std::max(known_bytes, kProgramBytes + (has_all_ranks ? 0 : kMpiBytes));
}

std::size_t ProcessShare::num_ranks() const {
  std::size_t sum = 0;
  for (const Ranks& alike : ranks) sum += alike.count;
  return sum;
}

tensor::MemoryLayout rank_arena(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                                std::size_t num_slices, const memory::MemoryRequest& request,
                                base::Rank rank) {
  return memory::plan_memory(table_of(schedule, model, num_slices, rank), schedule,
                             place_of(rank, num_slices), request);
}

MemoryReport process_memory(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                            std::size_t num_slices, const memory::MemoryRequest& request,
                            const ProcessShare& share) {
  const bool is_cpu = request.device == tensor::Device::Cpu;
  MemoryReport report{.device = request.device, .lines = {}};
  for (const auto& [rank, count] : share.ranks) {
    const tensor::MemoryLayout arena = rank_arena(schedule, model, num_slices, request, rank);
    add_arenas(arena, count, report);
    if (!is_cpu || !share.largest) continue;
    memory::MemoryRequest used = request;
    used.capacity = share.largest->micro_batch;
    used.words_of_step = std::llround(expected_distinct_words(
        static_cast<double>(share.largest->tokens), static_cast<double>(model.embedding.words.num_rows)));
    const tensor::MemoryLayout reached = rank_arena(schedule, model, num_slices, used, rank);
    report.untouched_bytes += count * (arena.num_bytes() - touched_bytes(arena, reached, kPageBytes));
  }
  report.outside_bytes = outside_bytes(request.device, share.has_all_ranks, share.known_outside_bytes);
  if (is_cpu) {  // on a GPU they are the host's
    add_line("batches",
             kStepsOfBatches * share.num_micro_batches * batch::micro_batch_bytes(request.capacity), report);
    add_line("threads", bytes_of_threads(schedule, num_slices, request, share), report);
  }
  add_whole_weights(schedule, model, num_slices, request, share, report);
  if (share.evaluated) {
    const tensor::MemoryLayout evaluation = memory::plan_forward(
        describe::ParameterTable(model), *share.evaluated, request.num_threads * share.num_ranks(),
        memory::ForwardWeights::Borrowed, request.device);
    add_line("evaluation", evaluation.num_bytes(), report);
  }
  return report;
}

}  // namespace plenum::plan
