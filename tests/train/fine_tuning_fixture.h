#pragma once

#include <algorithm>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/train/fine_tuning.h"
#include "plenum/train/trainer.h"

#include "tests/support/made_tasks.h"
#include "tests/support/random_bert.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {

/// A BERT of two layers with random weights, and files of a task that it learns.
class FineTuningTest : public TrainingTest {
 protected:
  FineTuningTest() {
    model_ = test::write_random_bert(
        directory_ / "bert", test::made_vocabulary(),
        {.width = 32, .num_layers = 2, .num_heads = 2, .mlp_width = 64, .max_positions = 64});
  }

  /// Files of the task with as many examples to train on, and half as many to evaluate on.
  RunOptions fine_tuning(const test::MadeTask& task, std::string_view run, int num_examples = 96) const {
    const std::string stem = fmt::format("{}-{}", describe::name_of(task.kind), num_examples);
    RunOptions options = fine_tuning_defaults();
    options.run.directory = directory_ / run;
    options.run.seed = 3;
    options.run.device = tensor::Device::Cpu;
    options.run.threads = 1;
    options.run.process.quiet = true;
    options.model.init = model_;
    options.data.global_batch = "12";
    options.data.micro_batch_tokens = 160;
    options.optimizer.learning_rate.peak = 2e-3;
    options.task.kind = task.kind;
    options.task.train =
        directory_.write(stem + "-train" + task.extension, made_examples(task, 1, num_examples));
    options.task.dev =
        directory_.write(stem + "-dev" + task.extension, made_examples(task, 2, num_examples / 2));
    options.task.data.max_length = 40;
    return options;
  }

  /// What steps of the last run lost.
  std::vector<double> losses() const {
    std::vector<double> losses;
    for (const StepReport& report : observer_.steps) losses.push_back(report.outcome.loss());
    return losses;
  }
  double last_score(const std::string& metric) const {
    const std::vector<data::TaskScore>& scores = observer_.evaluations.back().second.scores;
    return std::ranges::find(scores, metric, &data::TaskScore::name)->value;
  }

  std::string model_;
};

}  // namespace plenum::train
