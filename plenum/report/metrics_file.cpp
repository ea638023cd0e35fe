#include "plenum/report/metrics_file.h"

#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "plenum/base/units.h"
#include "plenum/report/line_reader.h"

namespace plenum::report {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
/// Of what counts, all whole numbers up to here are numbers of their own.
constexpr double kMostStep = 9007199254740992;

bool is_step(double step) {
  return step >= 0 && step <= kMostStep;
}

static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

void note_damage(const std::string& path, std::size_t num_damaged, std::vector<std::string>& faults) {
  if (num_damaged == 0) return;
  faults.push_back(fmt::format("{}: {} could not be read and {} left out", file_name(path),
                               num_damaged == 1 ? "1 line" : base::format_count(num_damaged) + " lines",
                               num_damaged == 1 ? "is" : "are"));
}

/// Hands over the object of every line that is one with a step; others are counted as damaged.
void read_objects(const std::string& path, std::vector<std::string>& faults,
                  base::FunctionRef<void(const object&, double step)> use) {
  simdjson::dom::parser parser;
  std::size_t num_damaged = 0;
  read_lines(path, [&](std::string_view line) {
    object fields;
    double step = 0;
    const bool is_good = parser.parse(line.data(), line.size(), false).get(fields) == simdjson::SUCCESS &&
                         fields["step"].get(step) == simdjson::SUCCESS && is_step(step);
    if (is_good)
      use(fields, step);
    else
      ++num_damaged;
  });
  note_damage(path, num_damaged, faults);
}

double number_of(const element& value) {
  double number = kNotANumber;
  return value.get(number) == simdjson::SUCCESS ? number : kNotANumber;
}

struct Column {
  std::string_view name;
  std::vector<double> StepColumns::*values;
};
constexpr std::array<Column, 10> kColumns = {{{"loss", &StepColumns::loss},
                                              {"lr", &StepColumns::learning_rate},
                                              {"gradient_norm", &StepColumns::gradient_norm},
                                              {"real_tokens", &StepColumns::real_tokens},
                                              {"padded_tokens", &StepColumns::padded_tokens},
                                              {"sequences", &StepColumns::sequences},
                                              {"seconds", &StepColumns::seconds},
                                              {"flops", &StepColumns::flops},
                                              {"wall_seconds", &StepColumns::wall_seconds},
                                              {"epoch", &StepColumns::epoch}}};

/// Steps do not fall: what lies behind one that comes again was trained again.
void remove_from(double step, StepColumns& steps) {
  while (!steps.step.empty() && steps.step.back() >= step) {
    steps.step.pop_back();
    for (const Column& column : kColumns) (steps.*column.values).pop_back();
  }
  while (!steps.skipped.empty() && static_cast<double>(steps.skipped.back()) >= step)
    steps.skipped.pop_back();
}

void add_step(const object& fields, double step, StepColumns& steps) {
  remove_from(step, steps);
  steps.step.push_back(step);
  for (const Column& column : kColumns) (steps.*column.values).push_back(kNotANumber);
  for (const auto& field : fields) {
    for (const Column& column : kColumns) {
      if (field.key != column.name) continue;
      (steps.*column.values).back() = number_of(field.value);
      break;
    }
    bool is_skipped = false;
    if (field.key == "num_steps") steps.num_steps = number_of(field.value);
    if (field.key == "skipped" && field.value.get(is_skipped) == simdjson::SUCCESS && is_skipped)
      steps.skipped.push_back(static_cast<std::uint64_t>(step));
  }
}

}  // namespace

StepColumns read_metrics(const std::string& path, std::vector<std::string>& faults) {
  StepColumns steps;
  read_objects(path, faults, [&](const object& fields, double step) { add_step(fields, step, steps); });
  return steps;
}

std::vector<EvaluationRecord> read_evaluations(const std::string& path, std::vector<std::string>& faults) {
  std::vector<EvaluationRecord> evaluations;
  read_objects(path, faults, [&](const object& fields, double step) {
    while (!evaluations.empty() && evaluations.back().step >= step) evaluations.pop_back();
    EvaluationRecord& evaluation = evaluations.emplace_back(EvaluationRecord{.step = step, .values = {}});
    for (const auto& field : fields) {
      const double number = number_of(field.value);
      if (std::isnan(number) || field.key == "step") continue;
      if (field.key == "wall_seconds")
        evaluation.wall_seconds = number;
      else if (field.key == "seconds")
        evaluation.seconds = number;
      else
        evaluation.values.emplace_back(field.key, number);
    }
  });
  return evaluations;
}

std::vector<RunEvent> read_events(const std::string& path, std::vector<std::string>& faults) {
  std::vector<RunEvent> events;
  std::size_t num_damaged = 0;
  read_lines(path, [&](std::string_view line) {
    nlohmann::json details = nlohmann::json::parse(line, nullptr, false);
    const double step = number_in(details, "/step").value_or(0);
    if (!details.is_object() || text_in(details, "/kind").empty() || !is_step(step)) {
      ++num_damaged;
      return;
    }
    RunEvent event{.step = step,
                   .time = number_in(details, "/time").value_or(0),
                   .kind = text_in(details, "/kind"),
                   .text = text_in(details, "/text"),
                   .details = {}};
    event.details = std::move(details);
    events.push_back(std::move(event));
  });
  note_damage(path, num_damaged, faults);
  return events;
}

}  // namespace plenum::report
