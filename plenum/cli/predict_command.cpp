#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/fine_tuning_report.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/training_session.h"
#include "plenum/cli/training_summary.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/task_prediction.h"

namespace plenum::cli {
namespace {

class PredictCommand final : public Command {
 public:
  std::string name() const override { return "predict"; }
  std::string summary() const override { return "Label examples with a fine-tuned model"; }
  std::vector<base::OptionTable> tables() override;
  void recall_options() override;
  int run() override;

 private:
  void report(const train::FilePredictions& predictions) const;

  std::string model_;
  std::string input_;
  std::string output_;
  train::CheckpointChoice checkpoint_;
  train::DeviceChoice device_;
  std::optional<std::int64_t> threads_;
  bool json_ = false;
  data::TaskOptions data_;
};

std::vector<base::OptionTable> PredictCommand::tables() {
  base::OptionTable table("predict");
  table
      .add("model", model_, "DIR",
           "A run of plenum finetune, one of its checkpoints, or a Hugging Face directory of a fine-tuned "
           "BERT")
      .positional = true;
  train::add_checkpoint_option(table, checkpoint_);
  table.add("input", input_, "FILE", "Examples; with labels, predictions are scored too");
  table.add("output", output_, "FILE",
            "Where a line of JSON for each example goes; standard output if not given");
  train::add_device_option(table, device_);
  table.add("threads", threads_, 1, 4096, "Threads; all cores if not given");
  table.add("json", json_, "With --output: print JSON");
  return {std::move(table), data_.table()};
}

/// Examples are read as those that the model was trained on.
void PredictCommand::recall_options() {
  if (model_.empty()) return;
  require_one_seed(model_);
  base::SilentProgress silent;
  data_ = train::task_options_of(train::find_model(model_, silent, checkpoint_));
}

int PredictCommand::run() {
  base::require(!model_.empty(), "no model is given; name a run of plenum finetune or a directory");
  base::require(!input_.empty(), "no examples are given; add --input FILE");
  base::require(!json_ || !output_.empty(), "--json needs --output FILE for the predictions");
  ProgressBar notes(stderr);
  const train::ModelSource source = train::find_model(model_, notes, checkpoint_);
  const train::Note note = [&](std::string_view line) { notes.note(line); };
  const train::PredictionPlace place{
      .num_threads = static_cast<std::size_t>(threads_.value_or(base::usable_cores())),
      .device = train::settle_device(device_, source.config, 1, note)};
  const train::FilePredictions predictions = train::predict_file(source, input_, data_, place, note);
  const std::string text = train::print_predictions(predictions);
  if (output_.empty()) {
    say(stdout, text);
  } else {
    io::write_file(output_, text);
  }
  report(predictions);
  return 0;
}

/// Beside the predictions on standard output, on the other one.
void PredictCommand::report(const train::FilePredictions& predictions) const {
  const auto num_examples = static_cast<std::uint64_t>(predictions.predictions.size());
  if (json_) {
    const nlohmann::ordered_json object = {{"model", model_},
                                           {"input", input_},
                                           {"output", output_},
                                           {"examples", num_examples},
                                           {"tokens", predictions.tokens},
                                           {"seconds", predictions.seconds},
                                           {"scores", scores_object(predictions.scores)}};
    say(stdout, print_line(object));
    return;
  }
  std::string text;
  if (!output_.empty())
    text = fmt::format("wrote {}: {} examples\n", output_, base::format_count(num_examples));
  if (!predictions.scores.empty()) text += scores_text(predictions.scores) + "\n";
  say(output_.empty() ? stderr : stdout, text);
}

}  // namespace

std::unique_ptr<Command> make_predict_command() {
  return std::make_unique<PredictCommand>();
}

}  // namespace plenum::cli
