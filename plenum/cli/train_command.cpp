#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stop_token>

#include <fmt/format.h>

#include "plenum/cli/command.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/rank_log.h"
#include "plenum/cli/stop_signals.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/train_processes.h"
#include "plenum/cli/training_display.h"
#include "plenum/cli/training_summary.h"
#include "plenum/control/rank_failure.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/pipeline/failure.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/trainer.h"

namespace plenum::cli {
namespace {

/// Said at once: until the step is done and its checkpoint written, nothing else shows that it was heard.
void tell_of_stop(int signal) {
  const char* name = signal == SIGINT    ? "Ctrl-C"
                     : signal == SIGTERM ? "SIGTERM"
                     : signal == SIGHUP  ? "SIGHUP"
                                         : "SIGUSR1";
  say(stderr,
      fmt::format("{}plenum: {}: stops when this step is done and a checkpoint is written; {} ends at "
                  "once and loses what came after the last checkpoint\n",
                  terminal_of(stderr).is_terminal ? "\r\x1b[K" : "", name,
                  signal == SIGINT ? "Ctrl-C again, a second later," : "Ctrl-C, a second later,"));
}

/// Whether options are kept in a directory. Without a lock it is not that of a run, whatever it holds.
bool has_kept_options(const std::string& directory) {
  return io::path_exists(train::RunPaths(directory).lock) && train::is_run_directory(directory);
}

/// Whether this process ended because another one did.
bool is_of_another(const std::exception& error) {
  const auto* execution = dynamic_cast<const pipeline::ExecutionError*>(&error);
  if (execution != nullptr) return !execution->failure().aborted_by.is_none();
  return dynamic_cast<const comm::Aborted*>(&error) != nullptr ||
         dynamic_cast<const control::RankFailed*>(&error) != nullptr;
}

class TrainCommand final : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "Pre-train a BERT; resumes automatically"; }
  std::vector<base::OptionTable> tables() override { return options_.tables(); }
  bool runs_plans() const override { return true; }

  /// A run's own configuration means the run that it lies in, wherever that was moved.
  void on_config_file(const std::string& path) override {
    const std::string directory = io::parent_directory(path);
    const bool has_its_name = std::filesystem::path(path).filename() ==
                              std::filesystem::path(train::RunPaths(directory).config).filename();
    if (has_its_name && has_kept_options(directory)) options_.run.directory = directory;
  }

  /// A run resumes with the options that it has.
  void recall_options() override {
    const std::string& directory = options_.run.directory;
    if (!directory.empty() && has_kept_options(directory)) options_ = train::read_run_options(directory);
  }

  int run() override {
    std::signal(SIGPIPE, SIG_IGN);  // training does not end because nobody listens
    const control::Launch launch = launch_of_environment();
    if (options_.run.process.gpus > 0) {
      options_.run.device = tensor::Device::Cuda;
      if (launch.launcher == control::Launcher::None) return train_on_gpus(options_.run);
    }
    const StopSignals signals(tell_of_stop);
    TrainProcesses processes(launch);
    processes.choose_gpu();
    processes.settle(options_.run);
    const RankLog log(options_.run.directory, launch);
    SilentDisplay silent;
    TrainingDisplay display(log.stream(), [&](std::string_view what) {
      if (!processes.is_alone()) processes.fail(what, false);
      end_hanging_process(what);
    });
    train::TrainingObserver& observer =
        options_.run.process.quiet ? static_cast<train::TrainingObserver&>(silent) : display;
    return train(processes, observer, display, signals.token());
  }

 private:
  int train(TrainProcesses& processes, train::TrainingObserver& observer, TrainingDisplay& display,
            const std::stop_token& stop) {
    train::Connect connect;
    if (!processes.is_alone())
      connect = [&](const train::RunOptions& settled) { return processes.connect(settled); };
    try {
      const train::TrainingResult result = train::train(options_, observer, stop, connect);
      processes.end();
      display.erase();
      const std::string& directory = options_.run.directory;
      if (processes.is_first())
        say(stdout,
            options_.run.process.json ? summary_json(result, directory) : summary_text(result, directory));
      return result.end == train::TrainingResult::End::Stopped ? kStoppedCode : 0;
    } catch (const train::HangError& error) {
      display.erase();
      if (!processes.is_alone()) processes.fail(error.what(), false);
      say(stderr, fmt::format("plenum: error: {}\n", error.what()));
      return kHangCode;
    } catch (const std::exception& error) {
      display.erase();
      if (processes.is_alone()) throw;
      const control::RankFailure failure = processes.fail(error.what(), is_of_another(error));
      if (processes.is_own(failure)) throw;
      if (processes.tells(failure))
        say(stderr, fmt::format("plenum: error: {}\n", control::failure_text(failure)));
      return kRankFailedCode;
    }
  }

  train::RunOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_train_command() {
  return std::make_unique<TrainCommand>();
}

}  // namespace plenum::cli
