#include "plenum/cli/plan_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plenum/base/units.h"
#include "plenum/cli/plan_memory_text.h"
#include "plenum/cli/terminal_plot.h"

namespace plenum::cli {
namespace {

using plan::Plan;

constexpr double kSecondsOfHour = 3600;
constexpr double kBillion = 1e9;

double tokens_per_second(const PlanReport& report, double step_seconds) {
  return report.tokens_per_step / step_seconds;
}

double share_of_peak(const PlanReport& report, double step_seconds) {
  const double peak = report.cluster->device.peak_flops * static_cast<double>(report.num_ranks);
  return report.flops_per_step / (step_seconds * peak);
}

std::optional<double> cost_of_billion(const PlanReport& report, double step_seconds) {
  if (!report.price_per_device_hour) return std::nullopt;
  const double hours = kBillion / tokens_per_second(report, step_seconds) / kSecondsOfHour;
  return hours * static_cast<double>(report.num_ranks) * *report.price_per_device_hour;
}

std::string bytes_text(double bytes) {
  return base::format_bytes(static_cast<std::uint64_t>(bytes));
}

std::string layers_text(const Plan& plan) {
  if (plan.strategy().depth == 1) return "";
  const std::vector<std::uint16_t>& begins = plan.candidate.stage_begins;
  std::vector<int> layers;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) layers.push_back(begins[i + 1] - begins[i]);
  const bool are_alike = std::ranges::all_of(layers, [&](int count) { return count == layers.front(); });
  if (are_alike) return fmt::format(", {} layer{} a stage", layers.front(), layers.front() == 1 ? "" : "s");
  return fmt::format(", stages of {} layers", fmt::join(layers, ","));
}

std::string buckets_text(const Plan& plan) {
  if (plan.strategy().replicas == 1) return "";
  return fmt::format(", buckets of {}", bytes_text(static_cast<double>(plan.strategy().bucket_bytes)));
}

std::string layout_text(const Plan& plan) {
  return plan::strategy_text(plan.strategy()) + layers_text(plan) + buckets_text(plan);
}

/// Of operations that nobody has measured.
std::string assumed_text(const PlanReport& report) {
  if (report.assumed.empty()) return "";
  return fmt::format(
      "The cluster's file says nothing of {}: assumed, by their operations; plenum calibrate measures "
      "them\n\n",
      fmt::join(report.assumed, ", "));
}

std::string head(const PlanReport& report) {
  const plan::Cluster& cluster = *report.cluster;
  const plan::SearchResult& result = report.result;
  std::string text = fmt::format(
      "{} on {}\n{} of {} devices, {} ({})\n", report.model, report.data,
      base::format_count(report.num_ranks), base::format_count(cluster.num_devices()), cluster.name,
      cluster.provenance == plan::Provenance::Measured ? "measured" : "from datasheets");
  text += fmt::format("{} tokens a step, {:.3g} FLOPs; up to {} for a process\n",
                      base::format_count(static_cast<std::uint64_t>(report.tokens_per_step)),
                      report.flops_per_step, bytes_text(result.memory_limit_bytes));
  text += fmt::format("{} layouts, {} too large, {} simulated, in {}{}\n\n",
                      base::format_count(result.num_candidates), base::format_count(result.num_too_large),
                      base::format_count(result.num_simulated), base::format_seconds(report.seconds),
                      result.is_cut_off ? "; others may be as fast: --simulate N looks at more"
                                        : "; by their lower bounds no other is faster");
  return text + assumed_text(report);
}

std::string table(const PlanReport& report) {
  const bool has_price = report.price_per_device_hour.has_value();
  std::string text = fmt::format("{:>3} {:>10} {:>19} {:>10} {:>8} {:>10}{}  {}\n", "", "step", "from - to",
                                 "tokens/s", "of peak", "memory", has_price ? "    cost/Gtok" : "", "layout");
  const std::size_t num_shown = std::min(report.num_shown, report.result.ranked.size());
  for (std::size_t i = 0; i < num_shown; ++i) {
    const Plan& plan = report.result.ranked[i];
    const double seconds = plan.step.seconds;
    const std::optional<double> cost = cost_of_billion(report, seconds);
    text += fmt::format(
        "{:>3} {:>10} {:>19} {:>10} {:>7.1f}% {:>10}{}  {}\n", i + 1, base::format_seconds(seconds),
        fmt::format("{} - {}", base::format_seconds(plan.step.least_seconds),
                    base::format_seconds(plan.step.most_seconds)),
        base::format_count(static_cast<std::uint64_t>(tokens_per_second(report, seconds))),
        100 * share_of_peak(report, seconds), bytes_text(static_cast<double>(plan.memory.peak_bytes())),
        cost ? fmt::format(" {:>12.2f}", *cost) : "", layout_text(plan));
  }
  return text;
}

std::string refresh_text(const Plan& plan) {
  const plan::MatrixWork& work = plan.strategy().matrices;
  if (work.kind == schedule::Preconditioner::Muon) return "in every step";
  std::string text = plan.refresh_steps == 1
                         ? std::string("a refresh in every step")
                         : fmt::format("a refresh every {:.3g} steps", plan.refresh_steps);
  if (plan.fills_bubbles) return text + " in the bubbles";
  const bool has_no_room = plan.strategy().depth > 1 && work.fill != plan::BubbleFill::Off;
  return text + (has_no_room ? ", outside bubbles: there is no room in them" : "");
}

/// What K-FAC, Muon or SOAP adds to each plan that is shown.
std::string overheads_text(const PlanReport& report) {
  if (report.overheads.empty()) return "";
  const schedule::Preconditioner kind = report.result.ranked.front().strategy().matrices.kind;
  const char* const name = kind == schedule::Preconditioner::Kfac   ? "K-FAC"
                           : kind == schedule::Preconditioner::Muon ? "Muon"
                                                                    : "SOAP";
  std::string text = fmt::format("\nWhat {} adds to the same layout without it\n", name);
  for (std::size_t i = 0; i < report.overheads.size(); ++i) {
    const plan::MatrixOverhead& overhead = report.overheads[i];
    const Plan& plan = report.result.ranked[i];
    const char* const sign = overhead.bytes < 0 ? "-" : "+";
    text += fmt::format("{:>3} {:>+9.1f}% of a step, {}{}, {}\n", i + 1,
                        100 * overhead.share_of(plan.step.seconds), sign,
                        bytes_text(std::abs(overhead.bytes)), refresh_text(plan));
  }
  return text;
}

std::string frontier(const PlanReport& report, int width) {
  const plan::SearchResult& result = report.result;
  if (result.frontier.size() < 2) return "";
  std::vector<CurvePoint> points;
  for (const std::size_t i : result.frontier) {
    const Plan& plan = result.ranked[i];
    points.push_back({static_cast<double>(plan.memory.peak_bytes()), 1e3 * plan.step.seconds});
  }
  std::ranges::reverse(points);
  constexpr int kRows = 8;
  std::string text =
      "\nMilliseconds of a step by the bytes of a process, of the layouts that were simulated\n";
  text += draw_curve(points, std::clamp(width, 24, 100), kRows);
  for (const std::size_t i : result.frontier) {
    const Plan& plan = result.ranked[i];
    text += fmt::format("{:>10} {:>10}  {}\n", bytes_text(static_cast<double>(plan.memory.peak_bytes())),
                        base::format_seconds(plan.step.seconds), layout_text(plan));
  }
  return text;
}

using Part = std::pair<const char*, double>;

std::array<Part, 9> parts_of(const plan::StepBreakdown& breakdown) {
  return {{{"arithmetic", breakdown.arithmetic},
           {"memory-bound operations", breakdown.memory},
           {"launch", breakdown.launch},
           {"communication, bandwidth", breakdown.communication_bandwidth},
           {"communication, latency", breakdown.communication_latency},
           {"waiting for other replicas", breakdown.waiting},
           {"bubbles", breakdown.bubbles},
           {"padding", breakdown.padding},
           {"optimizer", breakdown.optimizer}}};
}

std::string breakdown_text(const plan::StepBreakdown& breakdown) {
  std::string text = "\nWhere a step of the best goes, in the mean over ranks\n";
  const double total = breakdown.total();
  for (const auto& [name, seconds] : parts_of(breakdown)) {
    text += fmt::format("{:>28} {:>10} {:>6.1f}%\n", name, seconds > 0 ? base::format_seconds(seconds) : "-",
                        total > 0 ? 100 * seconds / total : 0);
  }
  return text;
}

std::string what_ifs_text(const PlanReport& report) {
  if (report.what_ifs.empty()) return "";
  const double now = report.result.ranked.front().step.seconds;
  std::string text = "\nWhat if\n";
  for (const WhatIfResult& result : report.what_ifs) {
    text += fmt::format("{:>28} ", result.change.text());
    if (!result.best) {
      text += "nothing fits\n";
      continue;
    }
    text += result.same_seconds
                ? fmt::format("{:>10}, {:.2f} times as fast", base::format_seconds(*result.same_seconds),
                              now / *result.same_seconds)
                : std::string("the best does not fit any more");
    const double best = result.best->step.seconds;
    constexpr double kAsGood = 0.999;
    if (!result.same_seconds || best < kAsGood * *result.same_seconds) {
      text += fmt::format("; {}, {:.2f} times, with {}", base::format_seconds(best), now / best,
                          layout_text(*result.best));
    }
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json json_of(const PlanReport& report, const Plan& plan) {
  const plan::Strategy& strategy = plan.strategy();
  nlohmann::ordered_json object;
  object["layout"] = layout_text(plan);
  object["dp"] = strategy.replicas;
  object["tp"] = strategy.slices;
  object["pp"] = strategy.depth;
  if (strategy.depth > 1) object["schedule"] = strategy.pipeline;
  object["stage_begins"] = plan.candidate.stage_begins;
  object["micro_batches"] = plan.candidate.limits.micro_batches_per_replica;
  object["micro_batch_rows"] = plan.candidate.limits.capacity.rows;
  object["step_seconds"] = plan.step.seconds;
  object["least_step_seconds"] = plan.step.least_seconds;
  object["most_step_seconds"] = plan.step.most_seconds;
  object["bound_seconds"] = plan.least_seconds;
  object["tokens_per_second"] = tokens_per_second(report, plan.step.seconds);
  object["share_of_peak"] = share_of_peak(report, plan.step.seconds);
  object["memory_bytes"] = plan.memory.peak_bytes();
  object["expected_memory_bytes"] = plan.memory.peak.expected_bytes();
  object["planned_memory_bytes"] = plan.memory.peak.planned_bytes;
  object["ranks_of_process"] = plan.memory.processes == plan::Processes::One ? strategy.num_ranks() : 1;
  object["memory_rank"] = plan.memory.peak_rank;
  object["memory_bytes_of_all"] = plan.memory.total_bytes;
  for (const tensor::MemoryLayout::Line& line : plan.memory.peak.lines)
    object["memory"][line.purpose] = line.bytes;
  if (const std::optional<double> cost = cost_of_billion(report, plan.step.seconds))
    object["cost_per_billion_tokens"] = *cost;
  return object;
}

}  // namespace

std::string plan_report_text(const PlanReport& report, int width) {
  std::string text = head(report) + table(report) + overheads_text(report) +
                     memory_text(report.result.ranked.front()) + frontier(report, width);
  if (report.memory) text += memory_text(*report.memory);
  if (report.breakdown) text += breakdown_text(*report.breakdown);
  return text + what_ifs_text(report);
}

std::string plan_report_json(const PlanReport& report) {
  nlohmann::ordered_json object;
  object["model"] = report.model;
  object["data"] = report.data;
  object["cluster"] = report.cluster->name;
  object["ranks"] = report.num_ranks;
  object["tokens_per_step"] = report.tokens_per_step;
  object["memory_limit_bytes"] = report.result.memory_limit_bytes;
  object["layouts"] = report.result.num_candidates;
  object["too_large"] = report.result.num_too_large;
  object["simulated"] = report.result.num_simulated;
  object["is_cut_off"] = report.result.is_cut_off;
  object["assumed_operations"] = report.assumed;
  object["seconds"] = report.seconds;
  object["plans"] = nlohmann::ordered_json::array();
  const std::size_t num_shown = std::min(report.num_shown, report.result.ranked.size());
  for (std::size_t i = 0; i < num_shown; ++i) {
    object["plans"].push_back(json_of(report, report.result.ranked[i]));
    if (i >= report.overheads.size()) continue;
    const Plan& plan = report.result.ranked[i];
    object["plans"].back()["matrix_work"] = {{"refresh_steps", plan.refresh_steps},
                                             {"fills_bubbles", plan.fills_bubbles},
                                             {"overhead_seconds", report.overheads[i].seconds},
                                             {"overhead_bytes", report.overheads[i].bytes}};
  }
  object["frontier"] = nlohmann::ordered_json::array();
  for (const std::size_t i : report.result.frontier)
    object["frontier"].push_back(json_of(report, report.result.ranked[i]));
  if (report.breakdown) {
    for (const auto& [name, seconds] : parts_of(*report.breakdown))
      object["breakdown_seconds"][name] = seconds;
  }
  if (report.memory) {
    for (const auto& rank : report.memory->ranks) {
      nlohmann::ordered_json of_rank;
      of_rank["bytes"] = rank.arena.num_bytes();
      of_rank["first_layer"] = rank.first_layer;
      of_rank["layers"] = rank.num_layers;
      of_rank["micro_batches_alive"] = rank.num_alive;
      for (const tensor::MemoryLayout::Line& line : rank.arena.lines())
        of_rank["memory"][line.purpose] = line.bytes;
      object["memory_of_ranks"].push_back(std::move(of_rank));
    }
  }
  for (const WhatIfResult& result : report.what_ifs) {
    nlohmann::ordered_json change;
    change["change"] = result.change.text();
    if (result.same_seconds) change["same_plan_seconds"] = *result.same_seconds;
    if (result.best) change["best"] = json_of(report, *result.best);
    object["what_if"].push_back(std::move(change));
  }
  return object.dump();
}

std::string plan_file_comment(const PlanReport& report, const Plan& plan) {
  std::string text = fmt::format(
      "# {} on {} ranks of {}: {}\n# predicted: {} a step, {} tokens/s, {} for {}\n", report.model,
      report.num_ranks, report.cluster->name, layout_text(plan), base::format_seconds(plan.step.seconds),
      base::format_count(static_cast<std::uint64_t>(tokens_per_second(report, plan.step.seconds))),
      bytes_text(static_cast<double>(plan.memory.peak_bytes())),
      plan.memory.processes == plan::Processes::One ? std::string("the process")
                                                    : fmt::format("rank {}", plan.memory.peak_rank));
  const bool is_one_node = report.num_ranks <= report.cluster->devices_per_node;
  if (!is_one_node) text += fmt::format("# start {} processes, with mpirun or srun\n", report.num_ranks);
  return text;
}

}  // namespace plenum::cli
