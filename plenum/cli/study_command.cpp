#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/terminal.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/study.h"
#include "plenum/train/study_report.h"

namespace plenum::cli {
namespace {

using train::StudyEngine;

class StudyCommand final : public Command {
 public:
  std::string name() const override { return "study"; }
  std::string summary() const override {
    return "Run a grid of configurations and compare each with its prediction";
  }

  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("study");
    table.add("data", request_.setting.data, "DIR", "Dataset made by plenum prepare");
    table.add("output", output_, "DIR", "Write the report, all numbers and plots to this directory");
    table.add("machine", request_.setting.machine, "FILE",
              "Predict by this file, which plenum calibrate wrote; if not given, each configuration is "
              "predicted from a second of measuring its own operations");
    table.add("grid", request_.grid.name, "NAME|FILE",
              "quick (about 10 configurations), full (40 or more), links (emulated networks), or a file with "
              "options of plenum train in every line");
    table.add("models", request_.grid.models, "NAME", "Models of a ready grid, instead of its own");
    table.add("ranks", ranks_, "N",
              "Numbers of ranks of a ready grid (default: 1, 2, 4 ... up to all cores)");
    table.add_choice("engine", request_.setting.engine,
                     {{"threads", StudyEngine::Threads}, {"mpi", StudyEngine::Mpi}},
                     "Let ranks be threads of a process, or processes");
    table.add("mpirun", mpirun_, "COMMAND", "What starts processes, with its options");
    table.add("steps", steps_, 0, 1'000'000,
              "Steps of each run, of which the first four do not count; 0: as many as last about --seconds");
    table.add("seconds", request_.setting.seconds, 0.1, 3600, "How long each run lasts, as predicted");
    table.add("repeats", request_.repeats, 1, 1000, "Runs of each configuration, in turns with the others");
    table.add("json", json_, "Print JSON");
    return {std::move(table)};
  }

  int run() override;

 private:
  /// Where runs lie while they last; gone with it.
  class RunsDirectory {
   public:
    explicit RunsDirectory(std::string path) : path_(std::move(path)) { io::make_directories(path_); }
    ~RunsDirectory() {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
    RunsDirectory(const RunsDirectory&) = delete;
    RunsDirectory& operator=(const RunsDirectory&) = delete;

   private:
    std::string path_;
  };

  void settle();
  void write(const train::Study& study, const std::string& report, const std::string& numbers) const;

  train::StudyRequest request_;
  std::vector<std::string> ranks_;
  std::string output_;
  std::string mpirun_ = "mpirun";
  std::int64_t steps_ = 0;
  bool json_ = false;
};

void StudyCommand::settle() {
  train::StudySetting& setting = request_.setting;
  base::require(!setting.data.empty(), "no dataset is given; add --data DIR, which plenum prepare makes");
  base::require(!output_.empty(), "no place for the report is given; add --output DIR");
  base::require(launch_of_environment().is_alone(),
                "plenum study starts processes itself; run it alone, with --engine mpi");
  base::require(setting.engine == StudyEngine::Threads || !setting.machine.empty(),
                "links between processes are not measured here; give --machine FILE, which plenum calibrate "
                "writes under mpirun");
  base::require(steps_ == 0 || steps_ > static_cast<std::int64_t>(train::StudyResult::kNumBefore),
                "the first {} steps of a run do not count; ask for more --steps, or for 0: {}",
                train::StudyResult::kNumBefore, steps_);
  constexpr std::int64_t kMostRanks = 1024;
  for (const std::string& text : ranks_) {
    const std::int64_t ranks = base::parse_integer(text, "ranks");
    base::require(ranks >= 1 && ranks <= kMostRanks, "--ranks must lie between 1 and {}: {}", kMostRanks,
                  ranks);
    request_.grid.ranks.push_back(ranks);
  }
  setting.cores = base::usable_cores();
  request_.grid.most_ranks = setting.cores;
  setting.num_steps = static_cast<std::uint64_t>(steps_);
  setting.program_bytes = base::peak_memory_bytes();
  setting.program = std::filesystem::read_symlink("/proc/self/exe").string();
  setting.environment = whole_environment();
  setting.directory = output_ + "/runs";
  std::istringstream words(mpirun_);
  for (std::string word; words >> word;) setting.mpirun.push_back(word);
}

void StudyCommand::write(const train::Study& study, const std::string& report,
                         const std::string& numbers) const {
  io::write_file(output_ + "/study.md", report);
  io::write_file(output_ + "/study.json", numbers);
  io::write_file(output_ + "/step-time.svg", train::step_time_plot(study));
  io::write_file(output_ + "/memory.svg", train::memory_plot(study));
  io::write_file(output_ + "/single-steps.svg", train::single_steps_plot(study));
}

int StudyCommand::run() {
  settle();
  io::make_directories(output_);
  const RunsDirectory runs(request_.setting.directory);
  const train::Study study =
      train::run_study(request_, [](std::string_view line) { say(stderr, fmt::format("{}\n", line)); });
  const std::string report = train::study_markdown(study);
  const std::string numbers = train::study_json(study);
  write(study, report, numbers);
  fmt::print("{}", json_ ? numbers : report);
  if (!json_)
    fmt::print("\nWritten to {0}: study.md, study.json, step-time.svg, memory.svg, single-steps.svg.\n",
               output_);
  return 0;
}

}  // namespace

std::unique_ptr<Command> make_study_command() {
  return std::make_unique<StudyCommand>();
}

}  // namespace plenum::cli
