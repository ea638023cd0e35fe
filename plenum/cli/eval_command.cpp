#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/train/evaluation.h"
#include "plenum/train/model_source.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/run_options.h"
#include "plenum/train/run_warnings.h"

namespace plenum::cli {
namespace {

/// The value of an option of training as that prints it. Throws UserError if it would not take it.
std::string checked(const char* name, const std::vector<std::string>& given) {
  data::TrainingDataOptions training;
  const base::OptionTable table = training.table();
  table.find(name)->set(given);
  return table.find(name)->get().front();
}

class EvalCommand final : public Command {
 public:
  std::string name() const override { return "eval"; }
  std::string summary() const override { return "Measure loss and accuracy on held-out text"; }
  std::vector<base::OptionTable> tables() override;
  int run() override;

 private:
  void add_masking(base::OptionTable& table);
  /// The masking of training with what is given here in its place.
  data::TrainingDataOptions masking(const train::ModelSource& model) const;
  void print(const train::ModelSource& model, const data::TrainingDataOptions& masking,
             const train::Evaluation& evaluation) const;

  std::string model_;
  std::string data_;
  std::optional<std::int64_t> sequences_;
  /// Options of training by name, with the text given here; empty where none is.
  std::array<std::pair<const char*, std::string>, 3> masking_ = {
      {{"mask-rate", ""}, {"mask-unit", ""}, {"mask-split", ""}}};
  train::CheckpointChoice checkpoint_;
  train::DeviceChoice device_;
  std::optional<std::int64_t> threads_;
  bool json_ = false;
};

void EvalCommand::add_masking(base::OptionTable& table) {
  data::TrainingDataOptions training;
  const base::OptionTable known = training.table();
  for (auto& [name, text] : masking_) {
    const base::Option& model = *known.find(name);
    base::Option& option = table.add(name, text, model.placeholder, model.help + "; the run's if not given");
    option.kind = model.kind;
    option.choices = model.choices;
    option.set = [&text, key = name](const std::vector<std::string>& given) { text = checked(key, given); };
    option.get = [&text]() -> std::vector<std::string> {
      return text.empty() ? std::vector<std::string>() : std::vector{text};
    };
  }
}

std::vector<base::OptionTable> EvalCommand::tables() {
  base::OptionTable table("eval");
  table.add("model", model_, "DIR", "A Hugging Face directory, a run of plenum train, or a checkpoint")
      .positional = true;
  train::add_checkpoint_option(table, checkpoint_);
  table.add("data", data_, "DIR",
            "The dataset on whose held-out sequences to evaluate; that of the run if not given");
  table.add("sequences", sequences_, 1, std::int64_t{1} << 60,
            "How many of them, drawn at random but always the same; all if not given");
  add_masking(table);
  train::add_device_option(table, device_);
  table.add("threads", threads_, 1, 4096, "Threads; all cores if not given");
  table.add("json", json_, "Print JSON");
  return {std::move(table)};
}

data::TrainingDataOptions EvalCommand::masking(const train::ModelSource& model) const {
  data::TrainingDataOptions options = train::training_data_of(model);
  const base::OptionTable table = options.table();
  for (const auto& [name, text] : masking_) {
    if (!text.empty()) table.find(name)->set({text});
  }
  base::require(options.mask_rate > 0, "mask-rate must be above 0: there would be nothing to predict");
  return options;
}

int EvalCommand::run() {
  base::require(!model_.empty(), "no model is given; name a Hugging Face directory or a run");
  ProgressBar notes(stderr);
  const train::ModelSource model = train::find_model(model_, notes, checkpoint_);
  train::require_masked_tokens(model);
  if (data_.empty()) data_ = train::training_data_of(model).directory;
  base::require(!data_.empty(), "no dataset is given, and {} is not of a run that knows one; add --data DIR",
                model_);
  const data::TrainingDataOptions masking = this->masking(model);
  const data::Dataset dataset(data_);
  train::require_same_tokens(dataset, model.tokenizer, model.config);
  const data::DatasetSequences sequences(dataset, data::Split::Holdout);
  data::require_fit(sequences, model.config);
  const data::EvaluationBatches batches(sequences,
                                        {.masking = masking.masking(), .max_sequences = sequences_});
  if (const auto warning = train::mask_rate_warning(masking.mask_rate, sequences.histogram()))
    notes.note(*warning);
  const auto num_threads = static_cast<std::size_t>(threads_.value_or(base::usable_cores()));
  const train::Note note = [&](std::string_view line) { notes.note(line); };
  std::vector<std::string> device_notes;  // for when the model is known to be good
  const train::Note on_device = [&](std::string_view line) { device_notes.emplace_back(line); };
  const std::unique_ptr<model::BertInference> inference =
      train::load_model(model, batches.capacity(), num_threads,
                        train::settle_device(device_, model.config, 1, on_device), note);
  for (const std::string& line : device_notes) notes.note(line);
  print(model, masking, train::evaluate(*inference, batches).value());
  return 0;
}

void EvalCommand::print(const train::ModelSource& model, const data::TrainingDataOptions& masking,
                        const train::Evaluation& evaluation) const {
  const char* unit = masking.mask_unit == data::MaskUnit::Word ? "word" : "token";
  if (json_) {
    nlohmann::ordered_json object = {
        {"model", model.directory},          {"data", data_},
        {"sequences", evaluation.sequences}, {"masked", evaluation.words().labels},
        {"mask_rate", masking.mask_rate},    {"mask_unit", unit},
        {"mask_split", masking.mask_split}};
    for (const train::ObjectiveResult& result : evaluation.objectives) {
      object[result.objective.name + "_loss"] = result.loss;
      object[result.objective.name + "_accuracy"] = result.accuracy;
      if (&result == &evaluation.words()) object["pseudo_perplexity"] = evaluation.pseudo_perplexity();
    }
    object["seconds"] = evaluation.seconds;
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{} on {} held-out sequences ({} masked tokens) of {}\n", model.directory,
             base::format_count(static_cast<std::uint64_t>(evaluation.sequences)),
             base::format_count(static_cast<std::uint64_t>(evaluation.words().labels)), data_);
  fmt::print("  masked             {:.4g} % by {}, {}\n", 100 * masking.mask_rate, unit, masking.mask_split);
  for (const train::ObjectiveResult& result : evaluation.objectives) {
    const std::string& title = result.objective.title;
    fmt::print("  {:<19}{:.4f}\n  {:<19}{:.2f} %\n", title + " loss", result.loss, title + " accuracy",
               100 * result.accuracy);
    if (&result == &evaluation.words())
      fmt::print("  pseudo-perplexity  {:.2f}\n", evaluation.pseudo_perplexity());
  }
}

}  // namespace

std::unique_ptr<Command> make_eval_command() {
  return std::make_unique<EvalCommand>();
}

}  // namespace plenum::cli
