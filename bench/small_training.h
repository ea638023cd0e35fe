#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
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

namespace plenum::bench {

struct SmallTrainingOptions {
  std::string data;
  std::string model = "bert-tiny";
  data::Layout layout = data::Layout::Unpadded;
  std::string global_batch = "2048tok";
  std::size_t ranks = 1;  ///< as which one rank works, one behind the other
  std::uint64_t steps = 400;
  std::uint64_t evaluations = 5;
  std::int64_t eval_sequences = 2048;
  double learning_rate = 1.5e-3;
  double mask_rate = 0.15;
  double clip_norm = 1;
  std::uint64_t seed = 1;
  std::size_t threads = base::usable_cores();
};

inline void add_options(CLI::App& app, SmallTrainingOptions& options) {
  app.add_option("--data", options.data, "Dataset of plenum prepare, with held-out text")->required();
  app.add_option("--model", options.model);
  app.add_option("--global-batch", options.global_batch);
  app.add_option("--steps", options.steps);
  app.add_option("--evaluations", options.evaluations);
  app.add_option("--eval-sequences", options.eval_sequences);
  app.add_option("--learning-rate", options.learning_rate);
  app.add_option("--mask-rate", options.mask_rate);
  app.add_option("--seed", options.seed);
  app.add_option("--threads", options.threads);
}

/// Trains a BERT on the CPU in ways that Plenum has no options for: with batches that are changed, or actions
/// that do more than they should. All forms see the same sequences, masks and first weights.
class SmallTraining {
 public:
  explicit SmallTraining(const SmallTrainingOptions& options)
      : options_(options),
        dataset_(options.data),
        train_(dataset_, data::Split::Train),
        held_out_(dataset_, data::Split::Holdout),
        model_(model_of(options, train_)),
        source_(train_, data_options(options), model_, options.ranks, options.seed),
        schedule_(
            schedule::generate_single({.num_micro_batches = source_.num_micro_batches(),
                                       .stage_layers = {static_cast<std::uint16_t>(model_.num_layers)}})),
        program_(schedule_, schedule::Rank{0},
                 {.model = model_,
                  .capacity = capacity(),
                  .optimizer = {.clip_norm = options.clip_norm},
                  .seed = options.seed,
                  .num_threads = options.threads}),
        evaluation_(held_out_,
                    {.masking = data_options(options).masking(), .max_sequences = options.eval_sequences}),
        inference_(model_, evaluation_.capacity(), options.threads, program_.weights()) {}

  std::int64_t max_length() const { return dataset_.max_length(); }
  std::size_t micro_batches_per_rank() const { return source_.micro_batches_per_rank(); }
  /// What does the actions of a step.
  pipeline::BertProgram& program() { return program_; }

  /// The step's micro-batches, those of the first rank first.
  batch::StepBatch batch_of(std::uint64_t step) const {
    std::vector<batch::StepBatch> of_ranks = source_.make(step);
    batch::StepBatch batch = std::move(of_ranks.front());
    for (std::size_t rank = 1; rank < of_ranks.size(); ++rank)
      std::ranges::move(of_ranks[rank].micro_batches, std::back_inserter(batch.micro_batches));
    return batch;
  }

  using MakeBatch = std::function<batch::StepBatch(std::uint64_t step)>;
  using OnStep = std::function<void(const pipeline::StepOutcome& outcome)>;
  /// Losses at an evaluation: behind how many steps and tokens, in training since the last one, and on
  /// held-out sequences, each by itself as a user of the model would give them.
  using OnEvaluation = std::function<void(nlohmann::json line)>;

  /// `actions` is the program, or passes on to it.
  void run(pipeline::StageProgram& actions, const MakeBatch& make_batch, const OnStep& on_step,
           const OnEvaluation& on_evaluation) {
    base::ThreadPool pool(options_.threads);
    model::initialise_weights(program_.parameters(), options_.seed, pool, program_.buffers().weights_N);
    program_.begin(0);
    pipeline::Executor executor(schedule_, pipeline::local_ranks({&actions}));
    const optim::RunLength run = {.steps_per_epoch = source_.steps_per_epoch(),
                                  .tokens_per_step = source_.expected_tokens_per_step(),
                                  .sequences_per_step = static_cast<double>(source_.items_per_step())};
    const optim::LearningRate rate({.peak = options_.learning_rate}, options_.steps, run);
    const std::uint64_t interval = std::max<std::uint64_t>(1, options_.steps / options_.evaluations);
    double loss = 0;
    double tokens = 0;
    for (std::uint64_t step = 0; step < options_.steps; ++step) {
      const batch::StepBatch batch = make_batch(step);
      program_.begin_step(batch, rate.at(step));
      executor.run(1);
      const pipeline::StepOutcome outcome = program_.outcome(step, batch.global);
      on_step(outcome);
      loss += outcome.loss();
      tokens += static_cast<double>(batch.global.tokens);
      if ((step + 1) % interval == 0) {
        on_evaluation(evaluated(step + 1, tokens, loss / static_cast<double>(interval)));
        loss = 0;
      }
    }
  }

 private:
  static describe::ModelConfig model_of(const SmallTrainingOptions& options,
                                        const data::SequenceSource& sequences) {
    describe::ModelConfig model = describe::preset(options.model);
    model.vocabulary = sequences.vocabulary().size;
    return model;
  }
  static data::TrainingDataOptions data_options(const SmallTrainingOptions& options) {
    data::TrainingDataOptions data;
    data.directory = options.data;
    data.layout = options.layout;
    data.global_batch = options.global_batch;
    data.mask_rate = options.mask_rate;
    return data;
  }
  /// Sequences that are made of others are no longer than the longest can be.
  batch::Capacity capacity() const {
    batch::Capacity capacity = source_.capacity();
    capacity.max_length = static_cast<std::int32_t>(max_length());
    return capacity;
  }
  nlohmann::json evaluated(std::uint64_t step, double tokens, double train_loss) {
    const train::Evaluation evaluation = *train::evaluate(inference_, evaluation_);
    return {{"step", step},
            {"tokens", tokens},
            {"train_loss", train_loss},
            {"held_out_loss", evaluation.words().loss},
            {"accuracy", evaluation.words().accuracy}};
  }

  SmallTrainingOptions options_;
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

}  // namespace plenum::bench
