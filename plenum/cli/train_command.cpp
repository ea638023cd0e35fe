#include <cstdio>

#include "plenum/base/check.h"
#include "plenum/cli/command.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/training_session.h"
#include "plenum/cli/training_summary.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/trainer.h"

namespace plenum::cli {
namespace {

class TrainCommand final : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "Pre-train a BERT; resumes automatically"; }
  std::vector<base::OptionTable> tables() override { return options_.tables(); }
  bool runs_plans() const override { return true; }

  void on_config_file(const std::string& path) override {
    if (const std::string run = run_of_config(path); !run.empty()) options_.run.directory = run;
  }

  /// A run resumes with the options that it has.
  void recall_options() override {
    const std::string& directory = options_.run.directory;
    if (!directory.empty() && has_kept_options(directory)) options_ = train::read_run_options(directory);
  }

  int run() override {
    base::require(!options_.task.kind, "{0} fine-tunes a model; plenum finetune --run {0} resumes it",
                  options_.run.directory);
    return run_training(options_, [this](const train::TrainingResult& result) {
      const std::string& directory = options_.run.directory;
      say(stdout,
          options_.run.process.json ? summary_json(result, directory) : summary_text(result, directory));
    });
  }

 private:
  train::RunOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_train_command() {
  return std::make_unique<TrainCommand>();
}

}  // namespace plenum::cli
