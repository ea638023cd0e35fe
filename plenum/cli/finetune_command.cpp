#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/cli/command.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/fine_tuning_report.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/training_session.h"
#include "plenum/cli/training_summary.h"
#include "plenum/io/config_file.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/fine_tuning.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/starting_model.h"
#include "plenum/train/training_data.h"

namespace plenum::cli {
namespace {

using base::OptionTable;

/// Options of training that fine-tuning does without: a task has no masks, its files are read whole by every
/// process, and the model comes from --model.
constexpr std::array<std::string_view, 9> kOfPretraining = {
    "data",      "data-sharding", "packing-plan",   "packing-depth", "mask-rate",
    "mask-unit", "mask-split",    "eval-sequences", "emulate-link"};

bool is_of_fine_tuning(const base::Option& option) {
  return std::ranges::find(kOfPretraining, option.name) == kOfPretraining.end();
}

/// Those of one of the runs.
train::RunOptions of_seed(train::RunOptions options, std::int64_t seed) {
  options.run.seed = seed;
  options.run.directory = fmt::format("{}/seed-{}", options.run.directory, seed);
  return options;
}

class FinetuneCommand final : public Command {
 public:
  std::string name() const override { return "finetune"; }
  std::string summary() const override { return "Fine-tune a BERT for a task; resumes automatically"; }
  std::vector<OptionTable> tables() override;

  void on_config_file(const std::string& path) override {
    if (const std::string run = run_of_config(path); !run.empty()) options_.run.directory = run;
  }
  void recall_options() override;
  int run() override;

 private:
  OptionTable model_table();
  OptionTable seeds_table();
  void require_seeds_can_run();
  int run_seeds();
  /// Exports, labels, and says what came of a run.
  train::FineTunedModel finish(const train::RunOptions& options) const;

  train::RunOptions options_ = train::fine_tuning_defaults();
  std::int64_t num_seeds_ = 0;
  bool is_of_pretraining_ = false;  ///< the run that is there
};

/// --model is where the weights are from: fine-tuning begins with nothing random but the head.
OptionTable FinetuneCommand::model_table() {
  OptionTable table("model");
  base::Option& model = table.add("model", options_.model.init, "DIR",
                                  "The model to fine-tune: a Hugging Face BERT directory, a run of plenum "
                                  "train, whose best checkpoint is taken, or a checkpoint");
  // A run's own configuration has a preset's name there, which is empty.
  model.set = [this](const std::vector<std::string>& given) {
    if (!given.front().empty()) options_.model.init = given.front();
  };
  const OptionTable of_training = options_.model.table();
  for (const char* name : {"hidden-dropout", "attention-dropout"}) {
    const base::Option* option = of_training.find(name);
    std::optional<double> ignored;
    table.add(name, ignored, 0.0, 1.0, option->help) = *option;
  }
  return table;
}

OptionTable FinetuneCommand::seeds_table() {
  OptionTable table("finetune");
  std::optional<double> ignored;
  base::Option& epochs =
      table.add("epochs", ignored, 0.0, 1e6, "How often to train on every example: --steps in epochs");
  epochs.set = [this](const std::vector<std::string>& given) {
    options_.run.steps = optim::parse_duration(given.front() + "ep", "epochs");
  };
  epochs.get = [] { return std::vector<std::string>(); };
  table.add("seeds", num_seeds_, 0, 1000,
            "Fine-tune this many times, with the seeds 1, 2, ..., in RUN/seed-1 and so on, and show mean and "
            "spread");
  return table;
}

std::vector<OptionTable> FinetuneCommand::tables() {
  std::vector<OptionTable> tables;
  for (const OptionTable& table : options_.all_tables()) {
    tables.push_back(table.name() == "model" ? model_table() : table.only(is_of_fine_tuning));
  }
  tables.push_back(seeds_table());
  return tables;
}

void FinetuneCommand::recall_options() {
  const std::string& directory = options_.run.directory;
  if (directory.empty()) return;
  if (io::path_exists(seeds_config(directory))) {
    const std::vector<OptionTable> known = tables();
    io::set_options(io::read_config_file(seeds_config(directory), known), known);
  } else if (has_kept_options(directory)) {
    options_ = train::read_run_options(directory);
    is_of_pretraining_ = !options_.task.kind;
  }
}

int FinetuneCommand::run() {
  const bool is_kept = has_kept_options(options_.run.directory);
  base::require(!is_of_pretraining_,
                "{0} pre-trains a model; choose another --run, and begin with it by --model {0}",
                options_.run.directory);
  options_.task.check();  // without a task it would pre-train
  base::require(!is_kept || num_seeds_ == 0, "{} is a single run; choose another --run for --seeds",
                options_.run.directory);
  if (num_seeds_ > 0) return run_seeds();
  return run_training(options_, [this](const train::TrainingResult& result) {
    const std::string& directory = options_.run.directory;
    const bool is_json = options_.run.process.json;
    if (result.end == train::TrainingResult::End::Stopped) {
      const std::string next = fmt::format("next: plenum finetune --run {} resumes\n", directory);
      say(stdout, is_json ? summary_json(result, directory) : progress_text(result) + next);
      return;
    }
    const train::FineTunedModel model = finish(options_);
    say(stdout, is_json ? print_line(fine_tuning_object(result, model, directory))
                        : fine_tuning_text(result, model, directory));
  });
}

train::FineTunedModel FinetuneCommand::finish(const train::RunOptions& options) const {
  base::SilentProgress silent;
  ProgressBar notes(stderr);
  base::Progress& progress = options.run.process.quiet ? static_cast<base::Progress&>(silent) : notes;
  return train::finish_fine_tuning(options.run.directory, progress);
}

/// What cannot be read, or is of another configuration than the runs that are there, is refused before
/// anything is made or written.
void FinetuneCommand::require_seeds_can_run() {
  const auto ignore = [](std::string_view) {};
  options_.model = train::settle_source(options_.model, ignore);
  options_ = train::settle_task(options_, ignore);
  const std::unique_ptr<const train::TrainingData> data = train::open_training_data(options_);
  const train::RunOptions settled =
      train::settle_defaults(options_, *data, options_.run.ranks, ignore, ignore);
  for (std::int64_t seed = 1; seed <= num_seeds_; ++seed) {
    const train::RunOptions options = of_seed(settled, seed);
    if (has_kept_options(options.run.directory)) const train::RunDirectory taken_up(options, *data);
  }
}

int FinetuneCommand::run_seeds() {
  base::require(options_.run.process.gpus == 0 && launch_of_environment().is_alone(),
                "--seeds runs one fine-tuning after the other in one process; give each a --seed and a --run "
                "of its own to use several processes");
  base::require(options_.run.seed == 0, "--seeds takes the seeds from 1 on; leave out --seed");
  const std::string directory = options_.run.directory;
  base::require(!directory.empty(), "no place for the runs is given; add --run DIR");
  options_.check();
  require_seeds_can_run();
  io::make_directories(directory);
  const train::ProcessSettings process = std::exchange(options_.run.process, {});
  io::write_file(seeds_config(directory), io::print_config(tables()));
  options_.run.process = process;
  std::vector<SeedResult> results;
  std::string metric;
  for (std::int64_t seed = 1; seed <= num_seeds_; ++seed) {
    train::RunOptions options = of_seed(options_, seed);
    bool is_stopped = false;
    const int code = run_training(options, [&](const train::TrainingResult& result) {
      is_stopped = result.end == train::TrainingResult::End::Stopped;
      if (is_stopped) return;
      const train::FineTunedModel model = finish(options);
      SeedResult& of_one = results.emplace_back();
      of_one.seed = seed;
      of_one.run = options.run.directory;
      of_one.loss = result.best_loss;
      for (const train::FineTunedModel::Labelled& labelled : model.labelled)
        (labelled.name == "dev" ? of_one.dev : of_one.test) = labelled.scores;
    });
    if (code != 0 || is_stopped) {
      say(stdout, options_.run.process.json
                      ? print_line({{"end", "stopped"}, {"run", directory}})
                      : fmt::format("stopped; next: plenum finetune --run {} resumes\n", directory));
      return code;
    }
    metric = train::read_run_options(options.run.directory).task.metric;
  }
  const nlohmann::ordered_json object = seeds_object(results, metric);
  io::write_file(directory + "/seeds.json", object.dump(2) + "\n");
  say(stdout, options_.run.process.json ? print_line(object) : seeds_text(results, metric, directory));
  return 0;
}

}  // namespace

std::unique_ptr<Command> make_finetune_command() {
  return std::make_unique<FinetuneCommand>();
}

}  // namespace plenum::cli
