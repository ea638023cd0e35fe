// Trains a BERT on packs, right and in the wrong ways that published packing warns of, and prints a line of
// JSON for each evaluation: the loss in training, and the loss on held-out sequences, each by itself as a
// user of the model would give them. All forms see the same sequences, masks and first weights.
//   build/bench/bench_leaks --data DIR --form isolated|no-mask|no-reset|neither
// *no-mask*: a pack is one sequence, so its tokens attend to its other sequences. *no-reset*: positions count
// on through a pack. Plenum has no options for these: they are made here, of micro-batches that are right.
#include <algorithm>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/machine.h"
#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/describe/bert.h"
#include "plenum/model/inference.h"
#include "plenum/model/initialise.h"
#include "plenum/optim/learning_rate.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/single.h"
#include "plenum/train/evaluation.h"

namespace plenum {
namespace {

struct Options {
  std::string data;
  std::string form = "isolated";
  std::string model = "bert-tiny";
  std::string global_batch = "2048tok";
  std::uint64_t steps = 400;
  std::uint64_t evaluations = 5;
  std::int64_t eval_sequences = 2048;
  double learning_rate = 1.5e-3;
  double mask_rate = 0.15;
  std::uint64_t seed = 1;
  std::size_t threads = base::usable_cores();

  bool leaks_attention() const { return form == "no-mask" || form == "neither"; }
  bool runs_positions_on() const { return form == "no-reset" || form == "neither"; }
};

/// Rows by what they read of the table of positions, as micro_batch_builder groups them.
batch::GroupedRows group_by_position(const batch::MicroBatch& micro_batch) {
  std::map<std::int32_t, std::vector<std::int32_t>> rows_of;
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    for (std::int32_t row = micro_batch.starts[s]; row < micro_batch.starts[s] + micro_batch.lengths[s];
         ++row)
      rows_of[micro_batch.positions[static_cast<std::size_t>(row)]].push_back(row);
  }
  batch::GroupedRows groups;
  for (const auto& [position, rows] : rows_of) {
    groups.entries.push_back(position);
    groups.starts.push_back(static_cast<std::int32_t>(groups.rows.size()));
    groups.rows.insert(groups.rows.end(), rows.begin(), rows.end());
  }
  groups.starts.push_back(static_cast<std::int32_t>(groups.rows.size()));
  return groups;
}

/// Lets positions count from the first row of a pack, which has `pack_rows` rows.
void run_positions_on(batch::MicroBatch& micro_batch, std::int32_t pack_rows) {
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    for (std::int32_t row = micro_batch.starts[s]; row < micro_batch.starts[s] + micro_batch.lengths[s];
         ++row)
      micro_batch.positions[static_cast<std::size_t>(row)] = row % pack_rows;
  }
  micro_batch.by_position = group_by_position(micro_batch);
}

/// Makes each pack one sequence, which is what attention without a mask takes it for.
void join_sequences(batch::MicroBatch& micro_batch, std::int32_t pack_rows) {
  batch::MicroBatch joined;
  for (std::size_t s = 0; s < micro_batch.starts.size(); ++s) {
    const std::int32_t start = micro_batch.starts[s];
    if (joined.starts.empty() || joined.starts.back() / pack_rows != start / pack_rows) {
      joined.starts.push_back(start);
      joined.lengths.push_back(0);
      joined.samples.push_back(micro_batch.samples[s]);
    }
    joined.lengths.back() = start + micro_batch.lengths[s] - joined.starts.back();
  }
  micro_batch.starts = joined.starts;
  micro_batch.lengths = joined.lengths;
  micro_batch.samples = joined.samples;
}

class LeakyTraining {
 public:
  explicit LeakyTraining(const Options& options)
      : options_(options),
        dataset_(options.data),
        train_(dataset_, data::Split::Train),
        held_out_(dataset_, data::Split::Holdout),
        model_(model_of(options, train_)),
        source_(train_, data_options(options), model_, 1, options.seed),
        schedule_(
            schedule::generate_single({.num_micro_batches = source_.micro_batches_per_rank(),
                                       .stage_layers = {static_cast<std::uint16_t>(model_.num_layers)}})),
        program_(schedule_, schedule::Rank{0},
                 {.model = model_,
                  .capacity = capacity(),
                  .optimizer = {},
                  .seed = options.seed,
                  .num_threads = options.threads}),
        evaluation_(held_out_,
                    {.masking = data_options(options).masking(), .max_sequences = options.eval_sequences}),
        inference_(model_, evaluation_.capacity(), options.threads, program_.weights()) {}

  void run() {
    base::ThreadPool pool(options_.threads);
    model::initialise_weights(program_.parameters(), options_.seed, pool, program_.buffers().weights_N);
    program_.begin(0);
    pipeline::Executor executor(schedule_, pipeline::local_ranks({&program_}));
    const optim::RunLength run = {.steps_per_epoch = source_.steps_per_epoch(),
                                  .tokens_per_step = source_.expected_tokens_per_step(),
                                  .sequences_per_step = static_cast<double>(source_.items_per_step())};
    const optim::LearningRate rate({.peak = options_.learning_rate}, options_.steps, run);
    const std::uint64_t interval = std::max<std::uint64_t>(1, options_.steps / options_.evaluations);
    double loss = 0;
    double tokens = 0;
    for (std::uint64_t step = 0; step < options_.steps; ++step) {
      const batch::StepBatch batch = batch_of(step);
      program_.begin_step(batch, rate.at(step));
      executor.run(1);
      loss += program_.outcome(step, batch.global).loss();
      tokens += static_cast<double>(batch.global.tokens);
      if ((step + 1) % interval == 0) {
        report(step + 1, tokens, loss / static_cast<double>(interval));
        loss = 0;
      }
    }
  }

 private:
  static describe::ModelConfig model_of(const Options& options, const data::SequenceSource& sequences) {
    describe::ModelConfig model = describe::preset(options.model);
    model.vocabulary = sequences.vocabulary().size;
    return model;
  }
  static data::TrainingDataOptions data_options(const Options& options) {
    data::TrainingDataOptions data;
    data.directory = options.data;
    data.layout = data::Layout::Packed;
    data.global_batch = options.global_batch;
    data.mask_rate = options.mask_rate;
    return data;
  }
  std::int32_t pack_rows() const { return static_cast<std::int32_t>(dataset_.max_length()); }
  /// A joined pack is as long as a pack may be.
  batch::Capacity capacity() const {
    batch::Capacity capacity = source_.capacity();
    capacity.max_length = pack_rows();
    return capacity;
  }
  batch::StepBatch batch_of(std::uint64_t step) const {
    batch::StepBatch batch = source_.make(step, base::Rank{0});
    for (batch::MicroBatch& micro_batch : batch.micro_batches) {
      if (options_.runs_positions_on()) run_positions_on(micro_batch, pack_rows());
      if (options_.leaks_attention()) join_sequences(micro_batch, pack_rows());
    }
    return batch;
  }
  void report(std::uint64_t step, double tokens, double train_loss) {
    const train::Evaluation evaluation = *train::evaluate(inference_, evaluation_);
    const nlohmann::json line = {{"form", options_.form},
                                 {"step", step},
                                 {"tokens", tokens},
                                 {"train_loss", train_loss},
                                 {"held_out_loss", evaluation.words().loss},
                                 {"accuracy", evaluation.words().accuracy}};
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  Options options_;
  data::Dataset dataset_;
  data::DatasetSequences train_;
  data::DatasetSequences held_out_;
  describe::ModelConfig model_;
  data::StepBatchSource source_;
  schedule::Schedule schedule_;
  pipeline::BertProgram program_;
  data::EvaluationBatches evaluation_;
  model::BertInference inference_;
};

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  CLI::App app("Trains on packs that leak");
  app.add_option("--data", options.data, "Dataset of plenum prepare, with held-out text")->required();
  app.add_option("--form", options.form)
      ->check(CLI::IsMember({"isolated", "no-mask", "no-reset", "neither"}));
  app.add_option("--model", options.model);
  app.add_option("--global-batch", options.global_batch);
  app.add_option("--steps", options.steps);
  app.add_option("--evaluations", options.evaluations);
  app.add_option("--eval-sequences", options.eval_sequences);
  app.add_option("--learning-rate", options.learning_rate);
  app.add_option("--mask-rate", options.mask_rate);
  app.add_option("--seed", options.seed);
  app.add_option("--threads", options.threads);
  CLI11_PARSE(app, argc, argv);
  try {
    plenum::LeakyTraining(options).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_leaks: {}\n", error.what());
    return 2;
  }
  return 0;
}
