#include "plenum/cli/plan_memory_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/units.h"

namespace plenum::cli {
namespace {

using base::format_bytes;
using Lines = std::vector<tensor::MemoryLayout::Line>;

std::string purposes_text(const Lines& lines) {
  std::string text;
  for (const auto& [purpose, bytes] : lines)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", purpose, format_bytes(bytes));
  return text;
}

std::string pipeline_text(const plan::MemoryExplanation& memory) {
  std::string text;
  if (memory.without_pipeline_bytes && memory.total_bytes > *memory.without_pipeline_bytes) {
    const std::size_t num_alive = memory.ranks.front().num_alive;
    text += fmt::format(
        "That is more than the {} of as many replicas without a pipeline: the first and the last rank both "
        "hold "
        "the word table ({} with gradient and state), and rank 0 has room for {} micro-batch{} at a time.\n",
        format_bytes(*memory.without_pipeline_bytes), format_bytes(memory.word_table_bytes), num_alive,
        num_alive == 1 ? "" : "es");
  }
  if (const auto& cut = memory.better_cut) {
    text +=
        fmt::format("With --stage-layers {} it is {}, and {} in place of {} for the largest rank.\n",
                    fmt::join(cut->stage_layers, ","), format_bytes(cut->total_bytes),
                    format_bytes(cut->most_bytes), format_bytes(memory.ranks[memory.most].arena.num_bytes()));
  }
  return text;
}

}  // namespace

std::string memory_text(const plan::Plan& plan) {
  const plan::StrategyMemory& memory = plan.memory;
  const plan::MemoryReport& peak = memory.peak;
  const bool is_one = memory.processes == plan::Processes::One;
  const std::string who =
      is_one ? "one process, with all ranks as threads (--ranks), takes"
             : fmt::format("each rank is a process; that of rank {} takes the most,", memory.peak_rank);
  return fmt::format(
      "\nMemory of the best: {} {} at most (planned {}: {}; outside the plan {}), {} as its steps are; all "
      "processes together {}.\n",
      who, format_bytes(peak.most_bytes()), format_bytes(peak.planned_bytes), purposes_text(peak.lines),
      format_bytes(peak.outside_bytes), format_bytes(peak.expected_bytes()),
      format_bytes(memory.total_bytes));
}

std::string memory_text(const plan::MemoryExplanation& memory) {
  constexpr std::size_t kMostShown = 16;
  std::string text = "\nWhat ranks of the first replica plan\n";
  const std::size_t num_shown = std::min(memory.ranks.size(), kMostShown);
  for (std::size_t i = 0; i < num_shown; ++i) {
    const auto& rank = memory.ranks[i];
    text += fmt::format("{:>6} {:>10}{} {} layer{} from {}: {}\n", i, format_bytes(rank.arena.num_bytes()),
                        i == memory.most ? " (most)" : "", rank.num_layers, rank.num_layers == 1 ? "" : "s",
                        rank.first_layer, purposes_text(rank.arena.lines()));
  }
  if (num_shown < memory.ranks.size())
    text += fmt::format("{:>6} {} more; rank {} has the most\n", "", memory.ranks.size() - num_shown,
                        memory.most);
  text += fmt::format("All ranks together: {}.\n", format_bytes(memory.total_bytes));
  return text + pipeline_text(memory);
}

}  // namespace plenum::cli
