#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/stop_signals.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/terminal_plot.h"
#include "plenum/cli/training_session.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_progress.h"

namespace plenum::cli {
namespace {

using base::format_count;
using base::format_seconds;
using train::RecordedStep;
using train::RunProgress;

constexpr int kRows = 10;
constexpr int kNarrowest = 24;
/// A run that another machine trains holds no lock that this one can see; it is taken for stopped when it
/// writes nothing for so long.
constexpr double kPatienceSeconds = 600;

/// "step 120/1,000  12 %  loss 6.123  3 min 12 s left".
std::string step_text(const RunProgress& progress) {
  const RecordedStep& last = progress.recent.back();
  std::string text = fmt::format("step {}", format_count(last.step));
  if (last.num_steps > 0) {
    text += fmt::format("/{}  {} %", format_count(last.num_steps), 100 * last.step / last.num_steps);
  }
  text += last.loss         ? fmt::format("  loss {:.3f}", *last.loss)
          : last.is_skipped ? std::string("  loss not finite")
                            : std::string("  no loss");
  if (last.step < last.num_steps)
    text += fmt::format("  {} left", format_seconds(std::max(1.0, progress.seconds_left())));
  return text;
}

std::string evaluation_text(const RunProgress& progress) {
  if (!progress.last_evaluation) return "evaluation: none yet\n";
  const train::RecordedEvaluation& last = *progress.last_evaluation;
  std::string text =
      fmt::format("evaluation: held-out loss {:.4f} at step {}", last.loss, format_count(last.step));
  if (last.accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *last.accuracy);
  if (progress.best_evaluation->step != last.step) {
    text += fmt::format("; best {:.4f} at step {}", progress.best_evaluation->loss,
                        format_count(progress.best_evaluation->step));
  }
  return text + "\n";
}

std::string state_text(const RunProgress& progress, const std::string& run) {
  if (progress.is_locked) return "state: training\n";
  if (progress.is_finished()) return "state: finished\n";
  const std::string silence = format_seconds(std::max(1.0, progress.silent_seconds));
  return fmt::format(
      "state: no process of this machine trains it; last step {} ago; plenum {} --run {} "
      "resumes\n",
      silence, train::read_run_options(run).task.kind ? "finetune" : "train", run);
}

std::string progress_text(const RunProgress& progress, const std::string& run, int width) {
  if (progress.recent.empty()) return fmt::format("{}: no step yet\n{}", run, state_text(progress, run));
  std::vector<CurvePoint> losses;
  for (const RecordedStep& step : progress.steps) {
    if (step.loss) losses.push_back({static_cast<double>(step.step), *step.loss});
  }
  const RecordedStep& last = progress.recent.back();
  std::string text = fmt::format("{}: {}\n", run, step_text(progress));
  text += draw_curve(losses, std::max(width, kNarrowest), kRows);
  text += fmt::format("speed: {} tokens/s; learning rate {:.3g}; epoch {:.2f}; {} of training\n",
                      format_count(static_cast<std::uint64_t>(progress.tokens_per_second())),
                      last.learning_rate, last.epoch, format_seconds(std::max(1e-3, last.wall_seconds)));
  text += evaluation_text(progress);
  if (!progress.checkpoint.empty()) text += fmt::format("checkpoint: {}\n", progress.checkpoint);
  return text + state_text(progress, run);
}

class WatchCommand final : public Command {
 public:
  std::string name() const override { return "watch"; }
  std::string summary() const override { return "Follow a run from another terminal"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("watch");
    table.add("run", run_, "DIR", "The output directory of plenum train").positional = true;
    table.add("once", once_, "Show where the run stands and stop");
    return {std::move(table)};
  }

  int run() override {
    base::require(!run_.empty(), "no run is given; name the directory of one");
    require_one_seed(run_);
    const bool is_followed = !once_ && terminal_of(stdout).is_terminal;
    const StopSignals signals;
    bool was_locked = false;
    while (true) {
      const int width = terminal_of(stdout).width - 1;
      const RunProgress progress =
          train::read_run_progress(run_, 4 * static_cast<std::size_t>(std::max(width, kNarrowest)));
      show(progress_text(progress, run_, width));
      const bool has_ended = !progress.is_locked && (was_locked || progress.is_finished() ||
                                                     progress.silent_seconds > kPatienceSeconds);
      was_locked |= progress.is_locked;
      if (!is_followed || has_ended || !wait(signals)) return 0;
      erase();
    }
  }

 private:
  /// Whether to go on.
  static bool wait(const StopSignals& signals) {
    constexpr std::chrono::milliseconds kBetweenLooks{50};
    constexpr int kLooks = 20;
    for (int look = 0; look < kLooks; ++look) {
      if (signals.token().stop_requested()) return false;
      std::this_thread::sleep_for(kBetweenLooks);
    }
    return true;
  }
  void show(const std::string& text) {
    num_lines_ = std::count(text.begin(), text.end(), '\n');
    say(stdout, text);
  }
  /// What was shown, so that what comes takes its place.
  void erase() const { say(stdout, fmt::format("\x1b[{}A\x1b[J", num_lines_)); }

  std::string run_;
  bool once_ = false;
  std::ptrdiff_t num_lines_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_watch_command() {
  return std::make_unique<WatchCommand>();
}

}  // namespace plenum::cli
