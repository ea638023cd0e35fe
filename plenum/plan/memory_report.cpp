#include "plenum/plan/memory_report.h"

#include <algorithm>

#include "plenum/batch/micro_batch_bytes.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/schedule_shard.h"

namespace plenum::plan {
namespace {

schedule::Rank place_of(base::Rank rank, std::size_t num_slices) {
  return schedule::Rank::at(rank.index() / num_slices);
}

/// The stacks of the ranks' threads as far as they are used, and what the allocator keeps for each.
std::size_t bytes_of_threads(const schedule::Schedule& schedule, std::size_t num_slices,
                             const memory::MemoryRequest& request, const std::vector<base::Rank>& ranks) {
  constexpr std::size_t kOfThread = std::size_t{64} << 10;  // 20 kB of stack and as much beside it were seen
  std::size_t num_threads = ranks.size() * (request.num_threads - 1);
  for (const base::Rank rank : ranks) {
    for (const schedule::LaneProgram& lane : schedule.ranks[place_of(rank, num_slices).index()].lanes)
      num_threads += lane.actions().empty() ? 0 : 1;
  }
  return num_threads * kOfThread;
}

}  // namespace

void add_arena(const tensor::MemoryLayout& arena, MemoryReport& report) {
  report.planned_bytes += arena.num_bytes();
  for (const tensor::MemoryLayout::Line& line : arena.lines()) {
    const auto known = std::find_if(report.lines.begin(), report.lines.end(),
                                    [&](const auto& other) { return other.purpose == line.purpose; });
    if (known == report.lines.end()) {
      report.lines.push_back(line);
    } else {
      known->bytes += line.bytes;
    }
  }
}

void add_line(const std::string& purpose, std::size_t bytes, MemoryReport& report) {
  report.planned_bytes += bytes;
  report.lines.push_back({purpose, bytes});
}

MemoryReport process_memory(const schedule::Schedule& schedule, const describe::ModelDescription& model,
                            std::size_t num_slices, const memory::MemoryRequest& request,
                            const ProcessShare& share) {
  MemoryReport report{.device = request.device, .lines = {}};
  for (const base::Rank rank : share.ranks) {
    const schedule::Rank place = place_of(rank, num_slices);
    const describe::ParameterTable table(
        describe::tensor_parallel_slice(model, {.index = rank.index() % num_slices, .size = num_slices}),
        memory::held_layers(schedule, place));
    add_arena(memory::plan_memory(table, schedule, place, request), report);
  }
  if (request.device != tensor::Device::Cpu) return report;  // the rest is the host's
  add_line("batches", kStepsOfBatches * share.num_micro_batches * batch::micro_batch_bytes(request.capacity),
           report);
  add_line("threads", bytes_of_threads(schedule, num_slices, request, share.ranks), report);
  return report;
}

}  // namespace plenum::plan
