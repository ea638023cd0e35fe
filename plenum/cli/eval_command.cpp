#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/data/dataset_sequences.h"
#include "plenum/data/evaluation_batches.h"
#include "plenum/train/evaluation.h"
#include "plenum/train/model_source.h"

namespace plenum::cli {
namespace {

void require_match(const data::SequenceSource& sequences, const train::ModelSource& model) {
  base::require(sequences.vocabulary().size == model.config.vocabulary,
                "{} has a vocabulary of {} tokens, the model one of {}; prepare the text with the model's "
                "tokenizer: plenum prepare --tokenizer {}",
                sequences.name(), sequences.vocabulary().size, model.config.vocabulary, model.tokenizer);
  base::require(sequences.max_length() <= model.config.max_positions,
                "{} has sequences of up to {} tokens, the model {} positions; prepare the text with "
                "--max-length {}",
                sequences.name(), sequences.max_length(), model.config.max_positions,
                model.config.max_positions);
}

class EvalCommand final : public Command {
 public:
  std::string name() const override { return "eval"; }
  std::string summary() const override { return "How well a model predicts masked tokens of held-out data"; }
  std::vector<base::OptionTable> tables() override;
  int run() override;

 private:
  void print(const train::ModelSource& model, const train::Evaluation& evaluation) const;

  std::string model_;
  std::string data_;
  std::optional<std::int64_t> sequences_;
  double mask_rate_ = data::MaskingOptions().rate;
  std::optional<std::int64_t> threads_;
  bool json_ = false;
};

std::vector<base::OptionTable> EvalCommand::tables() {
  base::OptionTable table("eval");
  table.add("model", model_, "DIR", "A Hugging Face directory, a run of plenum train, or a checkpoint")
      .positional = true;
  table.add("data", data_, "DIR", "The dataset on whose held-out sequences to evaluate");
  table.add("sequences", sequences_, 1, std::int64_t{1} << 60,
            "How many of them, drawn at random but always the same; all if not given");
  table.add_fraction("mask-rate", mask_rate_, "Share of the tokens that is masked");
  table.add("threads", threads_, 1, 4096, "Threads; all cores if not given");
  table.add("json", json_, "Print JSON");
  return {std::move(table)};
}

int EvalCommand::run() {
  base::require(!model_.empty(), "no model is given; name a Hugging Face directory or a run");
  base::require(!data_.empty(), "no dataset is given; add --data DIR");
  base::require(mask_rate_ > 0, "mask-rate must be above 0: there would be nothing to predict");
  ProgressBar notes(stderr);
  const train::ModelSource model = train::find_model(model_, notes);
  const data::Dataset dataset(data_);
  const data::DatasetSequences sequences(dataset, data::Split::Holdout);
  require_match(sequences, model);
  const data::EvaluationBatches batches(sequences,
                                        {.masking = {.rate = mask_rate_}, .max_sequences = sequences_});
  const auto num_threads = static_cast<std::size_t>(threads_.value_or(base::usable_cores()));
  const std::unique_ptr<model::BertInference> inference =
      train::load_model(model, batches.capacity(), num_threads);
  print(model, train::evaluate(*inference, batches).value());
  return 0;
}

void EvalCommand::print(const train::ModelSource& model, const train::Evaluation& evaluation) const {
  if (json_) {
    nlohmann::ordered_json object = {{"model", model.directory},
                                     {"data", data_},
                                     {"sequences", evaluation.sequences},
                                     {"masked", evaluation.masked},
                                     {"mlm_loss", evaluation.masked_loss},
                                     {"mlm_accuracy", evaluation.masked_accuracy},
                                     {"pseudo_perplexity", evaluation.pseudo_perplexity()}};
    if (evaluation.has_next_sentence) {
      object["nsp_loss"] = evaluation.next_sentence_loss;
      object["nsp_accuracy"] = evaluation.next_sentence_accuracy;
    }
    object["seconds"] = evaluation.seconds;
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{} on {} held-out sequences ({} masked tokens) of {}\n", model.directory,
             base::format_count(static_cast<std::uint64_t>(evaluation.sequences)),
             base::format_count(static_cast<std::uint64_t>(evaluation.masked)), data_);
  fmt::print("  MLM loss           {:.4f}\n  MLM accuracy       {:.2f} %\n  pseudo-perplexity  {:.2f}\n",
             evaluation.masked_loss, 100 * evaluation.masked_accuracy, evaluation.pseudo_perplexity());
  if (evaluation.has_next_sentence) {
    fmt::print("  NSP loss           {:.4f}\n  NSP accuracy       {:.2f} %\n", evaluation.next_sentence_loss,
               100 * evaluation.next_sentence_accuracy);
  }
}

}  // namespace

std::unique_ptr<Command> make_eval_command() {
  return std::make_unique<EvalCommand>();
}

}  // namespace plenum::cli
