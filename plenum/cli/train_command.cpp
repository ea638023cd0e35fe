#include <cstdio>

#include <fmt/format.h>

#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/stop_signals.h"
#include "plenum/cli/training_display.h"
#include "plenum/train/trainer.h"

namespace plenum::cli {
namespace {

void print_result(const train::TrainingResult& result, const std::string& run) {
  const bool is_finished = result.end == train::TrainingResult::End::Finished;
  fmt::print("{} {} of {} steps\n", is_finished ? "trained" : "stopped after",
             base::format_count(result.step), base::format_count(result.num_steps));
  if (result.evaluation) {
    fmt::print("held-out MLM loss {:.4f}, accuracy {:.2f} %, pseudo-perplexity {:.2f}\n",
               result.evaluation->masked_loss, 100 * result.evaluation->masked_accuracy,
               result.evaluation->pseudo_perplexity());
  }
  fmt::print("memory: {}\n", train::memory_text(result.memory, base::peak_memory_bytes()));
  fmt::print("checkpoint: {}\n", result.checkpoint);
  if (is_finished) {
    fmt::print("next: plenum export {0} --output DIR, or plenum fill-mask --model {0} \"some [MASK] text\"\n",
               run);
  } else {
    fmt::print("next: the same command goes on from there\n");
  }
}

class TrainCommand final : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override { return "Train a BERT on a dataset; goes on where it stopped"; }
  std::vector<base::OptionTable> tables() override { return options_.tables(); }

  int run() override {
    const StopSignals signals;
    SilentDisplay silent;
    TrainingDisplay display(stderr);
    const train::TrainingResult result =
        train::train(options_, options_.run.quiet ? static_cast<train::TrainingObserver&>(silent) : display,
                     signals.token());
    display.erase();
    print_result(result, options_.run.directory);
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
