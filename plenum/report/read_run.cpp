#include "plenum/report/read_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/io/lock_file.h"
#include "plenum/io/toml_file.h"
#include "plenum/report/metrics_file.h"

namespace plenum::report {
namespace {

namespace fs = std::filesystem;

std::string value_text(const io::TomlValue& value) {
  using Kind = io::TomlValue::Kind;
  if (value.kind == Kind::Flag) return value.flag ? "true" : "false";
  if (value.kind == Kind::Number) return fmt::format("{}", value.number);
  if (value.kind != Kind::List) return value.text;
  std::string text;
  for (const io::TomlValue& element : value.list) text += (text.empty() ? "" : ", ") + value_text(element);
  return text;
}

std::vector<ConfigOption> read_options(const std::string& path, std::vector<std::string>& faults) {
  std::vector<ConfigOption> options;
  try {
    for (const io::TomlEntry& section : io::read_toml_file(path).table) {
      for (const io::TomlEntry& option : section.value.table)
        options.push_back({fmt::format("{} in [{}]", option.key, section.key), value_text(option.value)});
    }
  } catch (const base::UserError& error) {
    faults.emplace_back(error.what());
  }
  return options;
}

std::optional<StepTimes> read_step_times(const std::string& path, std::vector<std::string>& faults) {
  if (!io::path_exists(path)) return std::nullopt;
  try {
    std::optional<StepTimes> times =
        parse_step_times(nlohmann::json::parse(io::read_file(path), nullptr, false));
    if (!times) faults.push_back(fmt::format("{} could not be read and is left out", path));
    return times;
  } catch (const base::UserError& error) {
    faults.emplace_back(error.what());
    return std::nullopt;
  }
}

/// Since one of them was, the last of all.
double seconds_since_written(std::initializer_list<std::string> paths) {
  double seconds = std::numeric_limits<double>::infinity();
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_time_type changed = fs::last_write_time(path, error);
    if (error) continue;
    seconds =
        std::min(seconds, std::chrono::duration<double>(fs::file_time_type::clock::now() - changed).count());
  }
  return seconds;
}

/// The last part of a path; of "." that of the directory it is.
std::string name_of(const std::string& directory) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(directory), error);
  return error || whole.filename().empty() ? directory : whole.filename().string();
}

}  // namespace

RunRecord read_run(const std::string& directory) {
  const auto path = [&](const char* name) { return fmt::format("{}/{}", directory, name); };
  base::require(!io::path_exists(path("seeds.toml")),
                "{0} holds runs of several seeds; name them, such as {0}/seed-1 {0}/seed-2", directory);
  base::require(io::path_exists(path("lock")) &&
                    (io::path_exists(path("config.toml")) || io::path_exists(path("metrics.jsonl"))),
                "{} is not the directory of a run; name one that plenum train or finetune has begun",
                directory);
  RunRecord run;
  run.name = name_of(directory);
  run.directory = directory;
  run.is_locked = io::is_lock_held(path("lock"));
  run.steps = read_metrics(path("metrics.jsonl"), run.faults);
  run.evaluations = read_evaluations(path("evaluations.jsonl"), run.faults);
  run.events = read_events(path("events.jsonl"), run.faults);
  run.step_times = read_step_times(path("step.json"), run.faults);
  run.options = read_options(path("config.toml"), run.faults);
  run.silent_seconds = seconds_since_written({path("metrics.jsonl"), path("events.jsonl"), path("lock")});
  return run;
}

}  // namespace plenum::report
