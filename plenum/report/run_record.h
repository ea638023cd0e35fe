#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/report/step_times.h"

namespace plenum::report {

/// The steps of a run as metrics.jsonl has them, a column for each quantity and an element for each step.
/// What a line lacks, or has as null, is not a number.
struct StepColumns {
  std::vector<double> step;
  std::vector<double> loss;
  std::vector<double> learning_rate;
  std::vector<double> gradient_norm;
  std::vector<double> real_tokens;
  std::vector<double> padded_tokens;
  std::vector<double> sequences;
  std::vector<double> seconds;
  std::vector<double> flops;
  std::vector<double> wall_seconds;
  std::vector<double> epoch;
  std::vector<std::uint64_t> skipped;  ///< the numbers of those that were
  double num_steps = 0;                ///< of the run, as the last line says

  std::size_t size() const { return step.size(); }
};

/// An evaluation as evaluations.jsonl has it: every number of its line by its name.
struct EvaluationRecord {
  double step = 0;
  double wall_seconds = 0;
  double seconds = 0;
  std::vector<std::pair<std::string, double>> values;  ///< the rest, in the order of the line

  std::optional<double> value(const std::string& name) const;
};

/// A line of events.jsonl.
struct RunEvent {
  double step = 0;
  double time = 0;  ///< seconds since 1970; 0 where it is not known
  std::string kind;
  std::string text;
  nlohmann::json details;  ///< the whole line

  bool begins_process() const { return kind == "begin" || kind == "resume"; }
  bool ends_process() const {
    return kind == "finish" || kind == "stop" || kind == "no better" || kind == "error";
  }
};

/// An option that a run was given or chose.
struct ConfigOption {
  std::string name;  ///< "steps in [run]"
  std::string value;
};

/// What the directory of a run tells of it. Runs of earlier versions, and those that were killed, lack some.
struct RunRecord {
  std::string name;       ///< of the directory
  std::string directory;  ///< as it was given
  StepColumns steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<RunEvent> events;
  std::optional<StepTimes> step_times;
  std::vector<ConfigOption> options;
  bool is_locked = false;           ///< by a process of this machine that trains it
  double silent_seconds = 0;        ///< since it wrote a step, an event or its lock
  std::vector<std::string> faults;  ///< a line for each thing that could not be read

  /// What the newest process wrote when it began; null where none did.
  const RunEvent* beginning() const;
  /// A number in it, by its JSON pointer: "/memory/planned_bytes".
  std::optional<double> number(const std::string& pointer) const;
  /// A text in it; empty where there is none.
  std::string text(const std::string& pointer) const;
  /// Whether all steps are done, or no better model was found any more.
  bool is_finished() const;
};

/// A number in a JSON value, by its JSON pointer; nothing where there is none.
std::optional<double> number_in(const nlohmann::json& value, const std::string& pointer);
/// A text in it; empty where there is none.
std::string text_in(const nlohmann::json& value, const std::string& pointer);
/// A list in it; an empty one where there is none.
nlohmann::json list_in(const nlohmann::json& value, const std::string& pointer);
/// The numbers of a list in it; none where there is no such list.
std::vector<double> numbers_in(const nlohmann::json& value, const std::string& pointer);

}  // namespace plenum::report
