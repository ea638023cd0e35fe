#pragma once

#include <array>
#include <functional>
#include <map>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/io/file.h"
#include "plenum/io/safetensors.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/trainer.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/temporary_directory.h"

namespace plenum::train {

/// Remembers what it was told, and does something after each step and each checkpoint.
class RecordingObserver final : public TrainingObserver {
 public:
  void on_begin(const RunSummary& given) override { summary = given; }
  void on_step(const StepReport& report) override {
    steps.push_back(report);
    if (after_step) after_step(report);
  }
  void on_evaluation(std::uint64_t step, const Evaluation& evaluation) override {
    evaluations.emplace_back(step, evaluation);
  }
  void on_checkpoint(std::uint64_t step, const std::string&) override {
    checkpoints.push_back(step);
    if (after_checkpoint) after_checkpoint(step);
  }
  void on_choice(std::string_view line) override { choices.emplace_back(line); }
  void on_note(std::string_view line) override { notes.emplace_back(line); }
  void on_table(std::string_view text) override { tables.emplace_back(text); }
  void on_hang(std::string_view line) override { hangs.emplace_back(line); }

  RunSummary summary;
  std::vector<StepReport> steps;
  std::vector<std::pair<std::uint64_t, Evaluation>> evaluations;
  std::vector<std::uint64_t> checkpoints;
  std::vector<std::string> choices;
  std::vector<std::string> notes;
  std::vector<std::string> tables;
  std::vector<std::string> hangs;
  std::function<void(const StepReport&)> after_step;
  std::function<void(std::uint64_t)> after_checkpoint;
};

/// Documents of a few words in random order, which a small model soon knows.
inline std::string learnable_text(unsigned seed, int num_documents) {
  constexpr std::array<const char*, 8> kWords = {"a",    "the", "pack",  "is",
                                                 "full", "of",  "short", "sequences"};
  std::mt19937 random(seed);
  std::string text;
  for (int document = 0; document < num_documents; ++document) {
    for (unsigned sentence = 0; sentence < 1 + random() % 6; ++sentence) {
      for (unsigned word = 0; word < 1 + random() % 7; ++word) {
        text += kWords[random() % kWords.size()] + std::string(" ");
      }
      text += ".\n";
    }
    text += "\n";
  }
  return text;
}

/// Gradients by the name of their parameter.
using Gradients = std::map<std::string, std::vector<float>>;

/// A small dataset of such text with held-out documents, and a BERT of two layers to train on it.
class TrainingTest : public testing::Test {
 protected:
  TrainingTest() { dataset_ = prepare("data", data::Objective::MaskedLanguageModel); }

  std::string prepare(const std::string& name, data::Objective objective,
                      const std::string& vocabulary = data::letter_vocabulary(), int num_documents = 100,
                      double holdout = 0.2) const {
    data::PrepareOptions options;
    options.inputs = {directory_.write(name + ".txt", learnable_text(7, num_documents))};
    options.output = directory_ / name;
    options.vocab_path = directory_.write(name + "-vocab.txt", vocabulary);
    options.sequences.max_length = 24;
    options.sequences.objective = objective;
    options.holdout = holdout;
    options.threads = 1;
    base::SilentProgress silent;
    data::prepare(options, silent);
    return options.output;
  }

  RunOptions options(std::string_view run, double steps = 8) const {
    RunOptions options;
    options.run.directory = directory_ / run;
    options.run.steps = {steps, optim::DurationUnit::Steps};
    options.run.seed = 3;
    options.run.device = tensor::Device::Cpu;
    options.run.threads = 1;
    options.run.process.quiet = true;  // whose runs do not measure the machine first
    options.model.preset = "bert-tiny";
    options.model.layers = 2;
    options.model.width = 16;
    options.model.heads = 2;
    options.model.mlp_width = 32;
    options.model.max_positions = 32;
    options.data.directory = dataset_;
    options.data.global_batch = "12";
    options.data.micro_batch_tokens = 72;
    options.optimizer.learning_rate.peak = 1e-2;
    options.checkpoint.every = {5, optim::DurationUnit::Steps};
    options.evaluation.every = {10, optim::DurationUnit::Steps};
    options.evaluation.sequences = 16;
    return options;
  }

  /// Every file of the newest checkpoint and its bytes.
  static std::map<std::string, std::string> newest_checkpoint(const RunOptions& options) {
    return data::contents_of(CheckpointStore(options.run.directory, 1).list().back());
  }

  /// Each file is compared on its own: a difference of all would print megabytes.
  static void expect_same_checkpoint(const RunOptions& actual, const RunOptions& expected) {
    const std::map<std::string, std::string> files = newest_checkpoint(actual);
    for (const auto& [file, bytes] : newest_checkpoint(expected))
      EXPECT_TRUE(files.at(file) == bytes) << file;
  }

  TrainingResult run(const RunOptions& options) {
    observer_ = RecordingObserver();
    return train(options, observer_, {});
  }
  /// Asks for a stop after a step.
  TrainingResult run_and_stop(const RunOptions& options, std::uint64_t step) {
    observer_ = RecordingObserver();
    std::stop_source source;
    observer_.after_step = [&](const StepReport& report) {
      if (report.step == step) source.request_stop();
    };
    return train(options, observer_, source.get_token());
  }

  /// What AdamW keeps as its first moments if it neither clips nor remembers.
  Gradients gradients_of_step_one(RunOptions options) {
    options.run.steps = {1, optim::DurationUnit::Steps};
    options.optimizer.optimizer.beta1 = 0;
    options.optimizer.optimizer.clip_norm = 0;
    const io::SafetensorsFile file(run(options).checkpoint + "/optimizer.safetensors");
    const std::string prefix = "exp_avg.";
    Gradients gradients;
    for (const io::SafetensorsTensor& tensor : file.tensors()) {
      if (!tensor.name.starts_with(prefix)) continue;
      std::vector<float>& values = gradients[tensor.name.substr(prefix.size())];
      values.resize(tensor.num_elements);
      file.read(tensor, values);
    }
    return gradients;
  }

  test::TemporaryDirectory directory_;
  std::string dataset_;
  RecordingObserver observer_;
};

}  // namespace plenum::train
