#include "plenum/cli/simulate_report.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/units.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::cli {
namespace {

using schedule::Simulation;

constexpr std::size_t kLongestPathShown = 12;

double ms(double seconds) {
  return seconds * 1e3;
}

const schedule::Action& action_of(const SimulatedSchedule& result, const schedule::CriticalAction& critical) {
  return result.schedule.ranks[critical.rank.index()].lane(critical.lane).actions()[critical.position];
}

const schedule::ActionTime& time_of(const SimulatedSchedule& result,
                                    const schedule::CriticalAction& critical) {
  return result.simulation->replay
      .times[critical.rank.index()][static_cast<std::size_t>(critical.lane)][critical.position];
}

double percent_more(double value, double than) {
  return than > 0 ? 100 * (value / than - 1) : 0;
}

/// The layers that a rank runs for one micro-batch, in the mean over those that pass it.
double layers_per_micro_batch(const schedule::RankProgram& rank) {
  double num_layers = 0;
  std::set<schedule::MicroBatchId> micro_batches;
  for (const schedule::Action& action : rank.lane(schedule::Lane::Compute).step(0)) {
    if (action.type != schedule::ActionType::Forward) continue;
    num_layers += action.end_layer.value - action.first_layer.value;
    micro_batches.insert(action.micro_batch);
  }
  return micro_batches.empty() ? 1 : num_layers / static_cast<double>(micro_batches.size());
}

/// Activations on a rank.
struct Activations {
  std::size_t num_layers = 0;    ///< one layer of one micro-batch counts 1
  double num_micro_batches = 0;  ///< as if all their layers on the rank lay there
};

/// The most that lie on a rank at a time, by the layers of each.
Activations most_activations(const SimulatedSchedule& result, const std::vector<std::size_t>& peak_layers) {
  Activations most;
  for (std::size_t rank = 0; rank < peak_layers.size(); ++rank) {
    most.num_layers = std::max(most.num_layers, peak_layers[rank]);
    most.num_micro_batches =
        std::max(most.num_micro_batches, static_cast<double>(peak_layers[rank]) /
                                             layers_per_micro_batch(result.schedule.ranks[rank]));
  }
  return most;
}

/// Of the step itself.
double peak_micro_batches(const SimulatedSchedule& result) {
  return most_activations(result, result.check.peak_activation_layers).num_micro_batches;
}

/// What filling keeps alive on a rank, beside the step's own activations.
struct KeptAlive {
  Activations activations;  ///< that curvature still has to read
  double bytes = 0;         ///< of all that waiting work reads; zero where the costs know none
};

KeptAlive kept_alive(const SimulatedSchedule& result) {
  std::vector<std::size_t> added = result.check.peak_kept_layers;
  for (std::size_t rank = 0; rank < added.size(); ++rank) {
    added[rank] -= result.check.peak_activation_layers[rank];
  }
  const std::vector<double>& bytes = result.fill->peak_kept_bytes;
  return {most_activations(result, added), *std::max_element(bytes.begin(), bytes.end())};
}

double preconditioning_percent(const SimulatedSchedule& result) {
  return percent_more(result.fill->base_step_seconds, result.unfilled->step_seconds);
}

void add_fill_json(const SimulatedSchedule& result, nlohmann::ordered_json& object) {
  const schedule::FillResult& fill = *result.fill;
  const KeptAlive kept = kept_alive(result);
  object["refresh_steps"] = fill.refresh_steps;
  object["refresh_bound"] = fill.refresh_bound;
  object["unfilled_step_ms"] = ms(result.unfilled->step_seconds);
  object["unfilled_utilization"] = result.unfilled->utilization;
  object["preconditioned_step_ms"] = ms(fill.base_step_seconds);
  object["preconditioning_percent"] = preconditioning_percent(result);
  object["filled_percent"] = percent_more(result.simulation->step_seconds, result.unfilled->step_seconds);
  object["mean_age"] = fill.mean_age;
  object["max_age"] = fill.max_age;
  object["coverage_a"] = fill.coverage_a.mean;
  object["coverage_b"] = fill.coverage_b.mean;
  object["least_coverage"] = std::min(fill.coverage_a.least, fill.coverage_b.least);
  object["kept_layers"] = kept.activations.num_layers;
  object["kept_micro_batches"] = kept.activations.num_micro_batches;
  object["kept_bytes"] = nullptr;
  if (kept.bytes > 0) object["kept_bytes"] = kept.bytes;
}

/// What filling does to a step and what it keeps alive, line by line.
std::string fill_text(const SimulatedSchedule& result) {
  const schedule::FillResult& fill = *result.fill;
  const KeptAlive kept = kept_alive(result);
  std::string text = fmt::format(
      "first order    {:.2f} ms, {:.1f} % of it computing; preconditioning makes a step {:.1f} % longer, "
      "with "
      "the filling {:.1f} %\n",
      ms(result.unfilled->step_seconds), 100 * result.unfilled->utilization, preconditioning_percent(result),
      percent_more(result.simulation->step_seconds, result.unfilled->step_seconds));
  text += fmt::format("refresh        every {:.2f} steps; no less than {:.2f} is possible (+{:.1f} %)\n",
                      fill.refresh_steps, fill.refresh_bound,
                      percent_more(fill.refresh_steps, fill.refresh_bound));
  text += fmt::format("inverses       {:.1f} steps old when used, {} at most\n", fill.mean_age, fill.max_age);
  if (fill.coverage_b.least < 1) {
    text +=
        fmt::format("statistics     of {:.0f} % of the rows for A and {:.0f} % for B, {:.0f} % at least\n",
                    100 * fill.coverage_a.mean, 100 * fill.coverage_b.mean,
                    100 * std::min(fill.coverage_a.least, fill.coverage_b.least));
  }
  text +=
      fmt::format("kept for it    {} layers ({:.3g} micro-batches) on a rank at most, beside the step's own",
                  kept.activations.num_layers, kept.activations.num_micro_batches);
  if (kept.bytes > 0) {
    text += fmt::format("; with factors {}", base::format_bytes(static_cast<std::uint64_t>(kept.bytes)));
  }
  return text + "\n";
}

double mean_bubble(const Simulation& simulation) {
  double sum = 0;
  for (const double bubble : simulation.bubble_seconds) sum += bubble;
  return sum / static_cast<double>(simulation.bubble_seconds.size());
}

/// What each action adds to the critical path: the time from the end of the one before it to its own. That is
/// how long it takes; for a receive, how long its message was on its way.
std::vector<schedule::ActionTime> critical_times(const SimulatedSchedule& result) {
  std::vector<schedule::ActionTime> times;
  for (const schedule::CriticalAction& critical : result.simulation->critical_path) {
    const schedule::ActionTime& time = time_of(result, critical);
    times.push_back({times.empty() ? time.start : times.back().end, time.end});
  }
  return times;
}

nlohmann::ordered_json critical_path_json(const SimulatedSchedule& result) {
  const schedule::StageLayers layers(result.schedule.problem);
  const std::vector<schedule::ActionTime> times = critical_times(result);
  nlohmann::ordered_json path = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const schedule::CriticalAction& critical = result.simulation->critical_path[i];
    path.push_back({{"rank", critical.rank.value},
                    {"lane", schedule::lane_name(critical.lane)},
                    {"action", schedule::action_text(action_of(result, critical), layers)},
                    {"start_ms", ms(times[i].start - result.simulation->replay.begin)},
                    {"ms", ms(times[i].end - times[i].start)}});
  }
  return path;
}

/// "F0.0 → SF0.0 → …", the middle of a long one left out.
std::string critical_path_text(const SimulatedSchedule& result) {
  const schedule::StageLayers layers(result.schedule.problem);
  std::string text;
  std::vector<std::string> words;
  const std::vector<schedule::ActionTime> times = critical_times(result);
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].end <= times[i].start) continue;  // what takes no time explains nothing
    words.push_back(schedule::action_text(action_of(result, result.simulation->critical_path[i]), layers));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_middle = i >= kLongestPathShown / 2 && i + kLongestPathShown / 2 < words.size();
    if (!is_middle) {
      text += text.empty() ? words[i] : " → " + words[i];
    } else if (i == kLongestPathShown / 2) {
      text += " → …";
    }
  }
  return fmt::format("{} ({} actions)", text, words.size());
}

}  // namespace

std::size_t pipeline_depth(const schedule::Schedule& schedule) {
  const schedule::Dataflow dataflow(schedule);
  std::set<schedule::Rank> ranks;
  for (std::size_t stage = 0; stage < schedule.num_stages(); ++stage) {
    ranks.insert(dataflow.runner(schedule::StageId::at(stage), {}));
  }
  return ranks.size();
}

std::string simulate_report_json(const SimulatedSchedule& result) {
  nlohmann::ordered_json object;
  object["schedule"] = result.schedule.name;
  object["stages"] = result.num_stages;
  object["micro_batches"] = result.num_micro_batches;
  object["ranks"] = result.schedule.ranks.size();
  object["steps"] = result.schedule.num_steps();
  object["actions"] = result.schedule.num_actions();
  object["step_ms"] = nullptr;
  object["utilization"] = nullptr;
  object["bubble_fraction"] = nullptr;
  if (result.simulation) {
    object["step_ms"] = ms(result.simulation->step_seconds);
    object["utilization"] = result.simulation->utilization;
    object["bubble_fraction"] = 1 - result.simulation->utilization;
  }
  object["refresh_steps"] = nullptr;
  object["refresh_bound"] = nullptr;
  if (result.fill) add_fill_json(result, object);
  object["violations"] = result.check.violations.size();
  object["first_violation"] = nullptr;
  if (!result.check.violations.empty()) {
    const schedule::Violation& first = result.check.violations.front();
    object["first_violation"] = fmt::format("{}: {}", first.where, first.why);
  }
  object["peak_activation_micro_batches"] = peak_micro_batches(result);
  object["critical_path"] = nlohmann::ordered_json::array();
  if (result.simulation) object["critical_path"] = critical_path_json(result);
  return object.dump();
}

std::string simulate_report_text(const SimulatedSchedule& result) {
  const Simulation& simulation = *result.simulation;
  std::string text = fmt::format("checked        {} actions on {} rank{}, no violation\n",
                                 base::format_count(result.schedule.num_actions()),
                                 base::format_count(result.schedule.ranks.size()),
                                 result.schedule.ranks.size() == 1 ? "" : "s");
  text += fmt::format("step           {:.2f} ms, {:.1f} % of it computing, {:.2f} ms idle on a rank\n",
                      ms(simulation.step_seconds), 100 * simulation.utilization, ms(mean_bubble(simulation)));
  if (result.fill) text += fill_text(result);
  text +=
      fmt::format("activations    of {:.3g} micro-batches on a rank at most\n", peak_micro_batches(result));
  return text + fmt::format("critical path  {}\n", critical_path_text(result));
}

std::string simulate_report_table(const std::vector<SimulatedSchedule>& results) {
  const bool is_filled = std::any_of(results.begin(), results.end(),
                                     [](const SimulatedSchedule& result) { return result.fill.has_value(); });
  std::string text = fmt::format("{:<14}{:>7}{:>12}{:>10}{:>12}{:>13}", "schedule", "ranks", "step ms",
                                 "busy", "idle ms", "activations");
  text += is_filled ? fmt::format("{:>14}{:>10}{:>9}\n", "refresh steps", "bound", "over") : "\n";
  for (const SimulatedSchedule& result : results) {
    const Simulation& simulation = *result.simulation;
    text +=
        fmt::format("{:<14}{:>7}{:>12.2f}{:>9.1f}%{:>12.2f}{:>13.3g}", result.schedule.name,
                    result.schedule.ranks.size(), ms(simulation.step_seconds), 100 * simulation.utilization,
                    ms(mean_bubble(simulation)), peak_micro_batches(result));
    if (result.fill) {
      text +=
          fmt::format("{:>14.2f}{:>10.2f}{:>8.1f}%", result.fill->refresh_steps, result.fill->refresh_bound,
                      percent_more(result.fill->refresh_steps, result.fill->refresh_bound));
    }
    text += "\n";
  }
  return text;
}

}  // namespace plenum::cli
