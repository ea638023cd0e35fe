#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/stop_signals.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/training_session.h"
#include "plenum/io/file.h"
#include "plenum/report/page.h"
#include "plenum/report/read_run.h"

namespace plenum::cli {
namespace {

/// A run that another machine trains holds no lock that this one can see; it is taken for stopped when it
/// writes nothing for so long.
constexpr double kPatienceOfReport = 600;

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

/// Names that tell runs apart: those of their directories, or what was given.
void name_apart(std::vector<report::RunRecord>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto has_name = [&](const report::RunRecord& run) { return run.name == runs[i].name; };
    if (std::ranges::count_if(runs, has_name) == 1) continue;
    const std::string name = runs[i].name;
    for (report::RunRecord& run : runs)
      if (run.name == name) run.name = run.directory;
  }
}

class ReportCommand final : public Command {
 public:
  std::string name() const override { return "report"; }
  std::string summary() const override { return "Write an HTML page of a run, or of several side by side"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("report");
    table.add("runs", runs_, "DIR...", "Output directories of plenum train").positional = true;
    table.add(
        "output", output_, "FILE",
        "Where to write it (default: report.html in the directory of the run; comparison.html for several)");
    table.add("live", is_live_, "Rewrite it until the run ends; the page reloads itself");
    table.add("every", every_, 1, 3600, "Seconds between rewrites with --live");
    return {std::move(table)};
  }

  int run() override {
    base::require(!runs_.empty(), "no run is given; name the directory of one, or of several to compare");
    base::require(runs_.size() <= report::kMostRuns, "{} runs are given; {} can be told apart in a chart",
                  runs_.size(), report::kMostRuns);
    for (std::size_t i = 0; i < runs_.size(); ++i)
      base::require(std::ranges::count(runs_, runs_[i]) == 1, "{} is given twice; name each run once",
                    runs_[i]);
    for (const std::string& run : runs_) require_one_seed(run);
    const std::string path = output_path();
    const StopSignals signals;
    bool was_locked = false;
    while (true) {
      const std::vector<report::RunRecord> runs = read_runs();
      const bool is_locked = std::ranges::any_of(runs, &report::RunRecord::is_locked);
      const bool has_ended = std::ranges::all_of(runs, [&](const report::RunRecord& run) {
        return !run.is_locked && (was_locked || run.is_finished() || run.silent_seconds > kPatienceOfReport);
      });
      was_locked |= is_locked;
      const bool goes_on = is_live_ && !has_ended && !signals.token().stop_requested();
      write(path, runs, goes_on);
      if (!goes_on) return 0;
      wait(signals);
    }
  }

 private:
  std::string output_path() const {
    if (!output_.empty()) return output_;
    return runs_.size() == 1 ? runs_.front() + "/report.html" : "comparison.html";
  }

  std::vector<report::RunRecord> read_runs() const {
    std::vector<report::RunRecord> runs;
    for (const std::string& directory : runs_) runs.push_back(report::read_run(directory));
    name_apart(runs);
    return runs;
  }

  void write(const std::string& path, const std::vector<report::RunRecord>& runs, bool goes_on) {
    const report::PageOptions options{.written = now_text(),
                                      .refresh_seconds = goes_on ? static_cast<int>(every_) : 0};
    const std::string page =
        runs.size() == 1 ? report::run_page(runs.front(), options) : report::comparison_page(runs, options);
    io::write_file(path, page);
    if (!was_told_ || !goes_on)
      say(stdout,
          fmt::format("{}: {}{}\n", path, base::format_bytes(page.size()),
                      goes_on ? fmt::format(", rewritten every {} s until the run ends", every_) : ""));
    was_told_ = true;
  }

  void wait(const StopSignals& signals) const {
    constexpr std::chrono::milliseconds kBetweenLooks{50};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(every_);
    while (std::chrono::steady_clock::now() < end && !signals.token().stop_requested())
      std::this_thread::sleep_for(kBetweenLooks);
  }

  std::vector<std::string> runs_;
  std::string output_;
  bool is_live_ = false;
  std::int64_t every_ = 5;
  bool was_told_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
  return std::make_unique<ReportCommand>();
}

}  // namespace plenum::cli
