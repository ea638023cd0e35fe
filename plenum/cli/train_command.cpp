#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/stop_signals.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/training_display.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/trainer.h"

namespace plenum::cli {
namespace {

/// How far the run is.
std::string progress_text(const train::TrainingResult& result) {
  const std::string step = base::format_count(result.step);
  const std::string num_steps = base::format_count(result.num_steps);
  if (result.first_step >= result.num_steps)
    return fmt::format("nothing remains to be done: {} steps are trained, {} are asked for\n", step,
                       num_steps);
  const bool is_finished = result.end == train::TrainingResult::End::Finished;
  return fmt::format("{} {} of {} steps\n", is_finished ? "trained" : "stopped after", step, num_steps);
}

std::string result_text(const train::TrainingResult& result, const std::string& run) {
  std::string text = progress_text(result);
  if (result.evaluation) {
    text += fmt::format("held-out MLM loss {:.4f}, accuracy {:.2f} %, pseudo-perplexity {:.2f}\n",
                        result.evaluation->words().loss, 100 * result.evaluation->words().accuracy,
                        result.evaluation->pseudo_perplexity());
  }
  if (result.best_loss && result.best_step != result.step) {
    text += fmt::format("best held-out loss {:.4f}, at step {}\n", *result.best_loss,
                        base::format_count(result.best_step));
  }
  text += fmt::format("memory: {}\n", train::memory_text(result.memory, result.used_bytes));
  text += fmt::format("checkpoint: {}\n", result.checkpoint);
  if (result.end == train::TrainingResult::End::Stopped)
    return text + fmt::format("next: plenum train --run {} goes on from there\n", run);
  return text + fmt::format(
                    "next: plenum export {0} --output DIR, or plenum fill-mask --model {0} \"some [MASK] "
                    "text\"\n",
                    run);
}

/// Whether options are kept in a directory. Without a lock it is not that of a run, whatever it holds.
bool has_kept_options(const std::string& directory) {
  return io::path_exists(train::RunPaths(directory).lock) && train::is_run_directory(directory);
}

class TrainCommand final : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "Pre-train a BERT; resumes automatically"; }
  std::vector<base::OptionTable> tables() override { return options_.tables(); }

  /// A run's own configuration means the run that it lies in, wherever that was moved.
  void on_config_file(const std::string& path) override {
    const std::string directory = io::parent_directory(path);
    const bool has_its_name = std::filesystem::path(path).filename() ==
                              std::filesystem::path(train::RunPaths(directory).config).filename();
    if (has_its_name && has_kept_options(directory)) options_.run.directory = directory;
  }

  /// A run goes on with the options that it has.
  void recall_options() override {
    const std::string& directory = options_.run.directory;
    if (!directory.empty() && has_kept_options(directory)) options_ = train::read_run_options(directory);
  }

  int run() override {
    const StopSignals signals;
    std::signal(SIGPIPE, SIG_IGN);  // training does not end because nobody listens
    SilentDisplay silent;
    TrainingDisplay display(stderr);
    train::TrainingObserver& observer =
        options_.run.process.quiet ? static_cast<train::TrainingObserver&>(silent) : display;
    try {
      const train::TrainingResult result = train::train(options_, observer, signals.token());
      display.erase();
      say(stdout, result_text(result, options_.run.directory));
    } catch (const train::HangError& error) {
      display.erase();
      say(stderr, fmt::format("plenum: error: {}\n", error.what()));
      return kHangCode;
    }
    return 0;
  }

 private:
  train::RunOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_train_command() {
  return std::make_unique<TrainCommand>();
}

}  // namespace plenum::cli
