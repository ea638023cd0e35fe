#include "plenum/train/study_answers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/describe/flops.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/plan/strategy.h"
#include "plenum/plan/waiting.h"

namespace plenum::train {
namespace {

using Results = std::vector<const StudyResult*>;

/// Measured ones by a key, in the order in which keys come; those of one key that are at least two.
std::vector<std::pair<std::string, Results>> groups_of(
    const std::vector<StudyResult>& results, const std::function<std::string(const StudyResult&)>& key_of) {
  std::vector<std::pair<std::string, Results>> groups;
  for (const StudyResult& result : results) {
    if (!result.is_measured()) continue;
    const std::string key = key_of(result);
    if (key.empty()) continue;
    const auto found = std::ranges::find(groups, key, &std::pair<std::string, Results>::first);
    (found == groups.end() ? groups.emplace_back(key, Results{}) : *found).second.push_back(&result);
  }
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  return groups;
}

const RunSettings& run_of(const StudyResult& result) {
  return result.configuration.options.run;
}

std::string mesh_text(const StudyResult& result) {
  const Mesh mesh = result.configuration.options.mesh();
  return fmt::format("dp {} x tp {} x pp {}", mesh.num_replicas(), mesh.num_slices(), mesh.depth());
}

/// Whether nothing is asked for but ranks and how they hold the model.
bool is_plain(const StudyResult& result) {
  const RunSettings& run = run_of(result);
  return run.shard == schedule::Sharding::None && run.recompute == schedule::Recomputation::None &&
         !run.bucket_bytes && run.schedule.empty() && !result.configuration.options.data.micro_batch_tokens &&
         !result.configuration.options.data.micro_batches;
}

/// The arguments without one option: what else is the same.
std::string arguments_without(const StudyResult& result, const std::string& name) {
  const std::vector<std::string>& arguments = result.configuration.arguments;
  std::string text;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--" + name) {
      ++i;
      continue;
    }
    if (arguments[i].starts_with("--" + name + "=")) continue;
    text += arguments[i] + " ";
  }
  return text;
}

double tokens_per_second(const StudyResult& result, double step_seconds) {
  return result.tokens_per_step() / step_seconds;
}

double predicted_exposed(const StudyResult& result) {
  const plan::StepBreakdown& breakdown = result.prediction.breakdown;
  return breakdown.communication_latency + breakdown.communication_bandwidth;
}

std::string_view sharded_text(schedule::Sharding sharding) {
  switch (sharding) {
    case schedule::Sharding::Optimizer:
      return ", optimizer sharded";
    case schedule::Sharding::Gradients:
      return ", gradients sharded";
    case schedule::Sharding::Parameters:
      return ", parameters sharded";
    case schedule::Sharding::None:
      break;
  }
  return "";
}

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.2f}", 1e3 * *seconds) : "";
}

/// With one decimal, and no zero below 0.
double percent(double share) {
  const double rounded = std::round(1000 * share) / 10;
  return rounded == 0 ? 0 : rounded;
}

/// Packs as the waiting model takes them: as sequences whose length is the number of keys that a token of the
/// pack reads in the mean.
struct Packs {
  packing::LengthHistogram keys;
  plan::LengthCost cost;
  double tokens_per_pack = 0;  ///< padding left out
};

Packs packs_of(const packing::LengthHistogram& lengths, const plan::LengthCost& cost) {
  const std::int64_t capacity = lengths.longest();
  const auto width = static_cast<double>(capacity);
  const packing::PackingPlan plan =
      packing::pack_lpfhp({.histogram = lengths, .capacity = capacity, .depth = capacity});
  Packs packs{
      .keys = {.counts = std::vector<std::uint64_t>(static_cast<std::size_t>(capacity) + 1)},
      .cost = {.of_sequence = cost.of_token * width, .of_token = cost.of_pair * width},
      .tokens_per_pack = static_cast<double>(lengths.num_tokens()) / static_cast<double>(plan.num_packs())};
  for (const packing::PackPattern& pattern : plan.patterns) {
    double squares = 0;
    for (const std::int32_t length : pattern.lengths) squares += static_cast<double>(length) * length;
    packs.keys.counts[static_cast<std::size_t>(std::max(1L, std::lround(squares / width)))] += pattern.count;
  }
  return packs;
}

}  // namespace

std::string parallelism_answer(const std::vector<StudyResult>& results) {
  const auto groups = groups_of(results, [](const StudyResult& result) -> std::string {
    if (!is_plain(result) || run_of(result).ranks < 2 || run_of(result).process.emulate_link) return "";
    return fmt::format("{}, {} ranks", result.configuration.work(), run_of(result).ranks);
  });
  if (groups.empty()) return "";
  std::string text =
      "\n## Data, pipeline and tensor parallelism on the same ranks\n\n"
      "| work | ranks held as | predicted ms | measured ms | measured, of the fastest "
      "|\n|---|---|--:|--:|--:|\n";
  for (const auto& [work, group] : groups) {
    const double fastest =
        (*std::ranges::min_element(group, {}, &StudyResult::measured_step))->measured_step();
    for (const StudyResult* const result : group)
      text += fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} |\n", work, mesh_text(*result),
                          1e3 * result->predicted_step(), 1e3 * result->measured_step(),
                          result->measured_step() / fastest);
  }
  return text;
}

std::string bucket_answer(const std::vector<StudyResult>& results) {
  const auto groups = groups_of(results, [](const StudyResult& result) -> std::string {
    if (result.configuration.options.mesh().num_replicas() < 2) return "";
    return arguments_without(result, "bucket-bytes");
  });
  if (groups.empty()) return "";
  std::string text =
      "\n## Bucket size\n\nHow many bytes of gradients are summed at a time; exposed is communication while "
      "the rank "
      "computes nothing, of one step.\n\n"
      "| configuration | buckets | predicted ms | measured ms | predicted exposed ms | measured exposed ms "
      "|\n|---|--:|--:|--:|--:|--:|\n";
  for (auto [arguments, group] : groups) {
    const auto bytes_of = [](const StudyResult* result) {
      return run_of(*result).bucket_bytes.value_or(plan::kBucketBytes);
    };
    std::ranges::sort(group, {}, bytes_of);
    for (const StudyResult* const result : group)
      text +=
          fmt::format("| {}, {} | {} | {:.2f} | {:.2f} | {:.2f} | {} |\n", result->configuration.work(),
                      mesh_text(*result), base::format_bytes(static_cast<std::uint64_t>(bytes_of(result))),
                      1e3 * result->predicted_step(), 1e3 * result->measured_step(),
                      1e3 * predicted_exposed(*result), milliseconds(result->exposed_seconds()));
  }
  return text;
}

std::string waiting_answer(const std::vector<StudyResult>& results) {
  std::string rows;
  for (const StudyResult& result : results) {
    const Mesh mesh = result.configuration.options.mesh();
    if (!result.is_measured() || mesh.num_replicas() != mesh.num_ranks() || mesh.num_ranks() < 2) continue;
    const std::optional<double> measured = result.skew_seconds();
    if (!measured) continue;
    rows += fmt::format("| {} | {:.2f} | {:.2f} | {:.1f} % | {:.1f} % |\n", result.name,
                        1e3 * result.prediction.skew_seconds, 1e3 * *measured,
                        100 * result.prediction.skew_seconds / result.predicted_step(),
                        100 * *measured / result.measured_step());
  }
  if (rows.empty()) return "";
  return "\n## Waiting time\n\nHow much later than the first the last rank ends its backward passes and can "
         "enter the "
         "last sum, in one step.\n\n"
         "| configuration | predicted ms | measured ms | predicted, of a step | measured, of a step "
         "|\n|---|--:|--:|--:|--:|\n" +
         rows;
}

std::string memory_answer(const std::vector<StudyResult>& results) {
  const auto groups = groups_of(results, [](const StudyResult& result) -> std::string {
    const RunSettings& run = run_of(result);
    const bool is_by_division = run.recompute == schedule::Recomputation::None && !run.bucket_bytes &&
                                run.schedule.empty() && !result.configuration.options.data.micro_batch_tokens;
    return is_by_division ? result.configuration.work() : "";
  });
  std::string rows;
  for (const auto& [work, group] : groups) {
    const auto is_alone = [](const StudyResult* result) { return run_of(*result).ranks == 1; };
    const auto alone = std::ranges::find_if(group, is_alone);
    if (alone == group.end()) continue;
    for (const StudyResult* const result : group) {
      rows += fmt::format(
          "| {} | {}{} | {} | {} | {:.2f} | {:.2f} |\n", work, mesh_text(*result),
          sharded_text(run_of(*result).shard), base::format_bytes(result->prediction.peak_bytes),
          base::format_bytes(result->used_bytes()),
          static_cast<double>(result->prediction.peak_bytes) /
              static_cast<double>((*alone)->prediction.peak_bytes),
          static_cast<double>(result->used_bytes()) / static_cast<double>((*alone)->used_bytes()));
    }
  }
  if (rows.empty()) return "";
  return "\n## Memory of all ranks together\n\nOf a process whose threads they are; the last columns are "
         "multiples of "
         "one rank's.\n\n"
         "| work | ranks held as | predicted | measured | predicted / one rank | measured / one rank "
         "|\n|---|---|--:|--:|--:|--:|\n" +
         rows;
}

std::string layout_answer(const std::vector<StudyResult>& results) {
  const auto groups =
      groups_of(results, [](const StudyResult& result) { return arguments_without(result, "layout"); });
  if (groups.empty()) return "";
  std::string text =
      "\n## Unpadded, packed and padded\n\nThousands of tokens per second, padding left out.\n\n"
      "| configuration | layout | predicted | measured | measured / padded |\n|---|---|--:|--:|--:|\n";
  for (const auto& [arguments, group] : groups) {
    const auto is_padded = [](const StudyResult* result) {
      return result->configuration.options.data.layout == data::Layout::Padded;
    };
    const auto padded = std::ranges::find_if(group, is_padded);
    for (const StudyResult* const result : group) {
      const double measured = tokens_per_second(*result, result->measured_step());
      const char* const layout = is_padded(result) ? "padded"
                                 : result->configuration.options.data.layout == data::Layout::Packed
                                     ? "packed"
                                     : "unpadded";
      text += fmt::format(
          "| {}, {} | {} | {:.1f} | {:.1f} | {} |\n", model_name(result->configuration.options.model),
          mesh_text(*result), layout, 1e-3 * tokens_per_second(*result, result->predicted_step()),
          1e-3 * measured,
          padded == group.end()
              ? ""
              : fmt::format("{:.2f}", measured / tokens_per_second(**padded, (*padded)->measured_step())));
    }
  }
  return text;
}

std::string link_answer(const std::vector<StudyResult>& results) {
  const auto groups = groups_of(results, [](const StudyResult& result) -> std::string {
    if (!run_of(result).process.emulate_link) return "";
    return fmt::format("{}, {} ranks", result.configuration.work(), run_of(result).ranks);
  });
  std::string rows;
  for (const auto& [work, group] : groups) {
    const StudyResult* data_parallel = nullptr;
    const StudyResult* pipeline = nullptr;
    for (const StudyResult* const result : group) {
      const Mesh mesh = result->configuration.options.mesh();
      if (mesh.num_replicas() == mesh.num_ranks()) data_parallel = result;
      if (mesh.depth() == mesh.num_ranks()) pipeline = result;
    }
    if (data_parallel == nullptr || pipeline == nullptr) continue;
    const double tokens_over_crossover =
        data_parallel->tokens_per_step() / (data_parallel->parameters / data_parallel->width);
    rows += fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} | {} |\n", work,
                        tokens_over_crossover, 1e3 * data_parallel->predicted_step(),
                        1e3 * data_parallel->measured_step(), 1e3 * pipeline->predicted_step(),
                        1e3 * pipeline->measured_step(),
                        data_parallel->predicted_step() < pipeline->predicted_step() ? "data" : "pipeline",
                        data_parallel->measured_step() < pipeline->measured_step() ? "data" : "pipeline");
  }
  if (rows.empty()) return "";
  return "\n## Data against pipeline parallelism over emulated links\n\nA replica sends as many bytes of "
         "gradients as it "
         "has parameters, a pipeline as many of activations as there are tokens times channels: they cross "
         "near "
         "tokens = parameters / width, where links are all that counts.\n\n"
         "| work | tokens / (parameters / width) | dp predicted ms | dp measured ms | pp predicted ms | pp "
         "measured ms | "
         "faster, predicted | faster, measured |\n|---|--:|--:|--:|--:|--:|---|---|\n" +
         rows;
}

std::string scale_answer(const describe::ModelDescription& model, const packing::LengthHistogram& lengths) {
  const describe::Flops flops(model);
  constexpr std::int64_t kTokens = 100'000;
  batch::Work tokens{.tokens = kTokens};
  tokens.labels.front() = kTokens * 15 / 100;
  const plan::LengthCost cost{.of_token = flops.training(tokens) / kTokens,
                              .of_pair = flops.training({.squared_lengths = kTokens}) / kTokens};
  const Packs packs = packs_of(lengths, cost);
  std::string text = fmt::format(
      "\n## Unpadded and packed on many ranks, from the model alone\n\nBERT-base on the study's lengths: "
      "{:.0f} tokens "
      "in the mean, {} at most; packs of {} are {:.1f} % full. How much longer a token takes than on one "
      "rank without "
      "padding, by operations and by the rank that has the most of them.\n\n"
      "| sequences of a rank | ranks | unpadded, at random | unpadded, divided evenly | packed "
      "|\n|--:|--:|--:|--:|--:|\n",
      lengths.mean_length(), lengths.longest(), lengths.longest(),
      100 * packs.tokens_per_pack / static_cast<double>(lengths.longest()));
  for (const std::size_t sequences : {4, 32}) {
    const double tokens_per_rank = static_cast<double>(sequences) * lengths.mean_length();
    const double num_packs = std::max(1.0, std::round(tokens_per_rank / packs.tokens_per_pack));
    for (std::size_t ranks = 32; ranks <= 2048; ranks *= 4) {
      const auto unpadded = [&](plan::Division division) {
        return plan::expected_rank_costs(lengths, cost, sequences, ranks, division);
      };
      const plan::RankCosts random = unpadded(plan::Division::AtRandom);
      const plan::RankCosts even = unpadded(plan::Division::Evenly);
      const plan::RankCosts packed = plan::expected_rank_costs(
          packs.keys, packs.cost, static_cast<std::size_t>(num_packs), ranks, plan::Division::AtRandom);
      const double packed_token = packed.expected_most / (num_packs * packs.tokens_per_pack);
      text += fmt::format("| {} | {} | {:+.1f} % | {:+.1f} % | {:+.1f} % |\n", sequences, ranks,
                          percent(random.expected_most / random.mean - 1),
                          percent(even.expected_most / even.mean - 1),
                          percent(packed_token * tokens_per_rank / random.mean - 1));
    }
  }
  return text;
}

std::string study_answers(const std::vector<StudyResult>& results, StudyEngine engine) {
  return parallelism_answer(results) + bucket_answer(results) + waiting_answer(results) +
         (engine == StudyEngine::Threads ? memory_answer(results) : "") + layout_answer(results) +
         link_answer(results);
}

}  // namespace plenum::train
