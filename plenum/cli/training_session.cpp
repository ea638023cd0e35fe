#include "plenum/cli/training_session.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stop_token>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/rank_log.h"
#include "plenum/cli/stop_signals.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/train_processes.h"
#include "plenum/cli/training_display.h"
#include "plenum/control/rank_failure.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/pipeline/failure.h"
#include "plenum/train/run_directory.h"

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

/// Whether this process ended because another one did.
bool is_of_another(const std::exception& error) {
  const auto* execution = dynamic_cast<const pipeline::ExecutionError*>(&error);
  if (execution != nullptr) return !execution->failure().aborted_by.is_none();
  return dynamic_cast<const comm::Aborted*>(&error) != nullptr ||
         dynamic_cast<const control::RankFailed*>(&error) != nullptr;
}

/// Trains, and ends as the other processes do.
int train(train::RunOptions& options, TrainProcesses& processes, train::TrainingObserver& observer,
          TrainingDisplay& display, const std::stop_token& stop,
          std::optional<train::TrainingResult>& result) {
  train::Connect connect;
  if (!processes.is_alone())
    connect = [&](const train::RunOptions& settled, const train::TrainingData& data) {
      return processes.connect(settled, data);
    };
  try {
    result = train::train(options, observer, stop, connect);
    processes.end();
    display.erase();
    return result->end == train::TrainingResult::End::Stopped ? kStoppedCode : 0;
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

}  // namespace

bool has_kept_options(const std::string& directory) {
  return io::path_exists(train::RunPaths(directory).lock) && train::is_run_directory(directory);
}

std::string seeds_config(const std::string& directory) {
  return directory + "/seeds.toml";
}

void require_one_seed(const std::string& directory) {
  base::require(!io::path_exists(seeds_config(directory)),
                "{0} holds runs of several seeds; name one of them, such as {0}/seed-1", directory);
}

std::string run_of_config(const std::string& path) {
  const std::string directory = io::parent_directory(path);
  const bool has_its_name = std::filesystem::path(path).filename() ==
                            std::filesystem::path(train::RunPaths(directory).config).filename();
  return has_its_name && has_kept_options(directory) ? directory : std::string();
}

int run_training(train::RunOptions& options, const AfterTraining& after) {
  std::signal(SIGPIPE, SIG_IGN);  // training does not end because nobody listens
  const control::Launch launch = launch_of_environment();
  if (options.run.process.gpus > 0) {
    options.run.device = tensor::Device::Cuda;
    if (launch.launcher == control::Launcher::None) return train_on_gpus(options.run);
  }
  const StopSignals signals(tell_of_stop);
  TrainProcesses processes(launch);
  processes.choose_gpu();
  processes.settle(options.run);
  const RankLog log(options.run.directory, launch);
  const EndProcess end_process = [&](std::string_view what) {
    if (!processes.is_alone()) processes.fail(what, false);
    end_hanging_process(what);
  };
  SilentDisplay silent(log.stream(), end_process);
  TrainingDisplay display(log.stream(), end_process);
  train::TrainingObserver& observer =
      options.run.process.quiet ? static_cast<train::TrainingObserver&>(silent) : display;
  std::optional<train::TrainingResult> result;
  const int code = train(options, processes, observer, display, signals.token(), result);
  if (result && processes.is_first()) after(*result);
  return code;
}

}  // namespace plenum::cli
