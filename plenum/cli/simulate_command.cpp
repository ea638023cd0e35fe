#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/simulate_options.h"
#include "plenum/cli/simulate_report.h"
#include "plenum/cli/terminal.h"
#include "plenum/io/file.h"
#include "plenum/pipeline/rehearsal.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/on_one_rank.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/simulate/message_order.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/schedule/text/parse_schedule.h"
#include "plenum/schedule/text/schedule_json.h"
#include "plenum/schedule/text/schedule_text.h"
#include "plenum/trace/overlay.h"
#include "plenum/trace/perfetto.h"
#include "plenum/trace/svg_drawing.h"
#include "plenum/trace/text_drawing.h"

namespace plenum::cli {
namespace {

using schedule::Schedule;

class SimulateCommand final : public Command {
 public:
  std::string name() const override { return "simulate"; }
  std::string summary() const override { return "Plan, check and draw distributed training steps"; }
  std::vector<base::OptionTable> tables() override { return {simulate_option_table(options_)}; }
  int run() override;

 private:
  int run_one() const;
  int run_comparison() const;
  Schedule read_schedule() const;
  Schedule generate(const schedule::Generator& generator, const schedule::GeneratorOptions& wanted) const;
  SimulatedSchedule simulate(Schedule schedule, std::size_t num_micro_batches, FillKind kind) const;
  SimulatedSchedule simulate_if_possible_filled(const Schedule& schedule,
                                                std::size_t num_micro_batches) const;
  schedule::FillResult fill(const Schedule& schedule, const schedule::CostModel& costs,
                            const schedule::LayerCosts& layer, FillKind kind) const;
  void write_schedule(const Schedule& schedule) const;
  /// Whether a timeline is asked for in any form.
  bool has_drawings() const;
  void draw(const SimulatedSchedule& result, const trace::Timeline& timeline) const;
  void write_drawings(const trace::Timeline& timeline) const;
  trace::Timeline timeline(const SimulatedSchedule& result) const;
  /// In seconds from the beginning of the timeline.
  struct Window {
    double from = 0;
    double to = std::numeric_limits<double>::infinity();
  };
  Window window(const trace::Timeline& timeline) const;
  void rehearse(const SimulatedSchedule& result, const trace::Timeline& predicted) const;
  std::string title(const SimulatedSchedule& result) const;

  SimulateOptions options_;
};

Schedule SimulateCommand::read_schedule() const {
  if (!options_.from.empty()) return schedule::parse_schedule(io::read_file(options_.from), options_.from);
  const schedule::Generator& generator = schedule::generator_named(options_.schedule);
  return generate(generator, generator_options(options_, generator));
}

/// With messages in the order that suits the costs.
Schedule SimulateCommand::generate(const schedule::Generator& generator,
                                   const schedule::GeneratorOptions& wanted) const {
  Schedule schedule = generator.generate(wanted);
  const schedule::ProfileCosts costs(schedule, layer_costs(options_),
                                     profile_options(options_, schedule.problem));
  base::check(schedule::order_messages(schedule, costs), "a generated schedule must run: {}", schedule.name);
  return schedule;
}

schedule::FillResult SimulateCommand::fill(const Schedule& schedule, const schedule::CostModel& costs,
                                           const schedule::LayerCosts& layer, FillKind kind) const {
  schedule::FillOptions wanted;
  wanted.mode = options_.fill_mode;
  wanted.margin = options_.margin;
  wanted.drains = options_.drains;
  if (options_.max_cycle) wanted.max_cycle_steps = static_cast<std::size_t>(*options_.max_cycle);
  if (options_.fill_memory_mib) {
    wanted.max_kept_bytes = static_cast<double>(*options_.fill_memory_mib) * 1024 * 1024;
  }
  const std::vector<schedule::MapBytes> maps = schedule::map_bytes(layer, bert_factor_maps());
  if (kind == FillKind::Kfac) return schedule::fill(schedule, schedule::KfacFiller(maps), costs, wanted);
  return schedule::fill(schedule, schedule::ShampooFiller(maps), costs, wanted);
}

SimulatedSchedule SimulateCommand::simulate(Schedule schedule, std::size_t num_micro_batches,
                                            FillKind kind) const {
  SimulatedSchedule result{.schedule = std::move(schedule), .num_micro_batches = num_micro_batches};
  result.num_stages = pipeline_depth(result.schedule);
  result.check = schedule::check(result.schedule);
  if (!result.check.violations.empty()) return result;
  const schedule::LayerCosts layer = layer_costs(options_);
  const schedule::ProfileCosts costs(result.schedule, layer,
                                     profile_options(options_, result.schedule.problem));
  if (kind != FillKind::None) {
    result.fill = fill(result.schedule, costs, layer, kind);
    result.unfilled = schedule::simulate(result.schedule, costs);
    result.schedule = std::move(result.fill->schedule);
  }
  if (options_.on_one_rank) result.schedule = schedule::on_one_rank(result.schedule);
  if (kind != FillKind::None || options_.on_one_rank) result.check = schedule::check(result.schedule);
  if (!result.check.violations.empty()) return result;
  if (options_.on_one_rank) {
    const schedule::ProfileCosts of_one(result.schedule, layer,
                                        profile_options(options_, result.schedule.problem));
    result.simulation = schedule::simulate(result.schedule, of_one);
  } else {
    result.simulation = schedule::simulate(result.schedule, costs);
  }
  return result;
}

std::string SimulateCommand::title(const SimulatedSchedule& result) const {
  const std::string costs =
      options_.profile.empty()
          ? ""
          : fmt::format(", {} at {}", std::filesystem::path(options_.profile).stem().string(),
                        options_.batch);
  const std::uint32_t num_micro_batches = result.schedule.problem.num_micro_batches;
  return fmt::format("{}, {} micro-batch{}{}", result.schedule.name, num_micro_batches,
                     num_micro_batches == 1 ? "" : "es", costs);
}

trace::Timeline SimulateCommand::timeline(const SimulatedSchedule& result) const {
  trace::Timeline timeline =
      schedule::timeline_of(result.schedule, result.simulation->replay.times, title(result));
  timeline.step_seconds = result.simulation->step_seconds;
  return timeline;
}

/// The part of the cycle to draw: some steps from the second on, since what fills the idle time at the begin
/// of the first stands at the end of the last.
SimulateCommand::Window SimulateCommand::window(const trace::Timeline& timeline) const {
  const std::vector<double>& begins = timeline.step_begin_seconds;
  const auto num_shown = static_cast<std::size_t>(options_.show_steps);
  if (begins.size() <= num_shown + 1) return {};
  return {begins[1] - timeline.begin_seconds, begins[1 + num_shown] - timeline.begin_seconds};
}

void SimulateCommand::draw(const SimulatedSchedule& result, const trace::Timeline& timeline) const {
  const Terminal terminal = terminal_of(stdout);
  trace::TextDrawingOptions drawing;
  drawing.width = static_cast<std::size_t>(options_.width > 0 ? options_.width : terminal.width);
  drawing.color =
      terminal.has_color ? trace::TextDrawingOptions::Color::Yes : trace::TextDrawingOptions::Color::No;
  drawing.tracks = options_.all_lanes ? trace::TextDrawingOptions::Tracks::All
                                      : trace::TextDrawingOptions::Tracks::Computation;
  const Window shown = window(timeline);
  drawing.from_seconds = shown.from;
  drawing.to_seconds = shown.to;
  fmt::print("{}\n{}", trace::draw_text(timeline, drawing), simulate_report_text(result));
}

void SimulateCommand::write_schedule(const Schedule& schedule) const {
  if (options_.output.empty()) return;
  io::write_file(options_.output, options_.output.ends_with(".json")
                                      ? schedule::print_schedule_json(schedule)
                                      : schedule::print_schedule_text(schedule));
}

bool SimulateCommand::has_drawings() const {
  return !options_.json || !options_.svg.empty() || !options_.trace.empty() || options_.rehearse;
}

void SimulateCommand::write_drawings(const trace::Timeline& timeline) const {
  if (!options_.svg.empty()) {
    const Window shown = window(timeline);
    io::write_file(options_.svg,
                   trace::draw_svg(timeline, {.from_seconds = shown.from, .to_seconds = shown.to}));
  }
  if (options_.trace.empty()) return;
  io::AtomicFile file(options_.trace);
  trace::write_trace(timeline, [&file](std::string_view piece) { file.write(piece); });
  file.commit();
}

/// Runs the schedule and lays what was measured over what was predicted.
void SimulateCommand::rehearse(const SimulatedSchedule& result, const trace::Timeline& predicted) const {
  constexpr std::size_t kNumCycles = 2;  // the first begins with nothing to work on
  const schedule::ProfileCosts costs(result.schedule, layer_costs(options_),
                                     profile_options(options_, result.schedule.problem));
  const auto num_steps = static_cast<double>(kNumCycles * result.schedule.num_steps());
  fmt::print(stderr, "plenum: rehearsing for {}\n",
             base::format_seconds(num_steps * result.simulation->step_seconds));
  const trace::Timeline measured = schedule::timeline_of(
      result.schedule, pipeline::rehearse(result.schedule, costs, kNumCycles), "measured");
  const trace::Overlay overlay = trace::lay_over(predicted, measured);
  if (!options_.overlay.empty()) io::write_file(options_.overlay, trace::overlay_svg(overlay, title(result)));
  if (!options_.json) fmt::print("\n{}", trace::overlay_text(overlay));
}

int SimulateCommand::run_one() const {
  Schedule schedule = read_schedule();
  const std::size_t num_micro_batches = options_.from.empty()
                                            ? static_cast<std::size_t>(options_.micro_batches)
                                            : schedule.problem.num_micro_batches;
  const SimulatedSchedule result = simulate(std::move(schedule), num_micro_batches, options_.fill);
  if (!result.check.violations.empty()) {
    if (options_.json) fmt::print("{}\n", simulate_report_json(result));
    const schedule::Violation& first = result.check.violations.front();
    base::fail("{}: {}: {}", options_.from.empty() ? options_.schedule : options_.from, first.where,
               first.why);
  }
  write_schedule(result.schedule);
  const trace::Timeline predicted = has_drawings() ? timeline(result) : trace::Timeline();
  write_drawings(predicted);
  if (options_.json) {
    fmt::print("{}\n", simulate_report_json(result));
  } else {
    draw(result, predicted);
  }
  if (options_.rehearse) rehearse(result, predicted);
  return 0;
}

SimulatedSchedule SimulateCommand::simulate_if_possible_filled(const Schedule& schedule,
                                                               std::size_t num_micro_batches) const {
  try {
    return simulate(schedule, num_micro_batches, options_.fill);
  } catch (const base::UserError& error) {
    if (options_.fill == FillKind::None) throw;
    fmt::print(stderr, "plenum: {} is not filled: {}\n", schedule.name, error.what());
    return simulate(schedule, num_micro_batches, FillKind::None);
  }
}

/// All schedules on the same model, the same number of ranks and the same micro-batches, as far as each can.
int SimulateCommand::run_comparison() const {
  std::vector<SimulatedSchedule> results;
  for (const schedule::Generator& generator : schedule::all_generators()) {
    try {
      schedule::GeneratorOptions wanted = generator_options(options_, generator);
      if (generator.mesh == schedule::Mesh::Replicas) {
        // As many ranks as the pipelines have; each replica's micro-batches are divided among its ranks.
        const auto num_ranks = static_cast<std::size_t>(options_.stages);
        base::require(wanted.num_micro_batches % num_ranks == 0,
                      "{} micro-batches cannot be divided over {} ranks", wanted.num_micro_batches,
                      num_ranks);
        wanted.num_micro_batches /= num_ranks;
        wanted.num_replicas *= num_ranks;
      }
      results.push_back(simulate_if_possible_filled(generate(generator, wanted), wanted.num_micro_batches));
      base::check(results.back().check.violations.empty(), "a generated schedule must be right: {}",
                  generator.name);
    } catch (const base::UserError& error) {
      fmt::print(stderr, "plenum: {} is left out: {}\n", generator.name, error.what());
    }
  }
  base::require(!results.empty(), "no schedule can be generated with these options");
  if (!options_.json) {
    fmt::print("{}", simulate_report_table(results));
    return 0;
  }
  std::vector<std::string> objects;
  for (const SimulatedSchedule& result : results) objects.push_back(simulate_report_json(result));
  fmt::print("[{}]\n", fmt::join(objects, ",\n "));
  return 0;
}

int SimulateCommand::run() {
  require_consistent(options_);
  if (const std::string unused = unused_options(options_); !unused.empty()) {
    fmt::print(stderr, "plenum: not used with {}: {}\n", options_.compare ? "--compare" : "--from", unused);
  }
  return options_.compare ? run_comparison() : run_one();
}

}  // namespace

std::unique_ptr<Command> make_simulate_command() {
  return std::make_unique<SimulateCommand>();
}

}  // namespace plenum::cli
