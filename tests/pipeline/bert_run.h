#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "plenum/batch/step_batch.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/tensor/copy.h"

#include "tests/support/test_sequences.h"
#include "tests/support/wide_heads.h"

namespace plenum::pipeline {

/// A small model with everything that a BERT has.
inline describe::ModelConfig small_model(double dropout = 0) {
  return {.vocabulary = 97,
          .width = 32,
          .num_layers = 3,
          .num_heads = 4,
          .mlp_width = 64,
          .max_positions = 24,
          .hidden_dropout = dropout,
          .attention_dropout = dropout,
          .has_next_sentence = true};
}

/// How ranks sum the gradient of the word table, where gradients are not sharded.
enum class WordTable : std::uint8_t { Whole, InHalves };

inline schedule::Schedule bert_schedule(const describe::ModelConfig& model, std::size_t num_ranks,
                                        std::size_t num_micro_batches,
                                        schedule::Recomputation recompute = schedule::Recomputation::None,
                                        schedule::Sharding sharding = schedule::Sharding::None,
                                        optim::OptimizerKind optimizer = optim::OptimizerKind::AdamW,
                                        WordTable words = WordTable::InHalves) {
  const bool has_tied_halves =
      words == WordTable::InHalves && num_ranks > 1 && sharding <= schedule::Sharding::Optimizer;
  return schedule::generator_named(num_ranks == 1 ? "single" : "data-parallel")
      .generate({.num_micro_batches = num_micro_batches,
                 .num_replicas = num_ranks,
                 .stage_layers = {static_cast<std::uint16_t>(model.num_layers)},
                 .num_buckets = 2,
                 .recomputation = recompute,
                 .sharding = sharding,
                 .has_tied_parameters = has_tied_halves,
                 .has_tied_halves = has_tied_halves,
                 .has_tensor_norms = optimizer == optim::OptimizerKind::Lamb});
}

/// Deals sequences out to micro-batches; with `row_length` padded.
inline batch::StepBatch deal_out(std::uint64_t step, std::span<const test::TestSequence> sequences,
                                 std::size_t num_micro_batches, std::int64_t row_length = 0) {
  std::vector<std::vector<test::TestSequence>> parts(num_micro_batches);
  for (std::size_t i = 0; i < sequences.size(); ++i) parts[i % num_micro_batches].push_back(sequences[i]);
  batch::StepBatch batch{.step = step, .epoch = 1, .global = {}, .micro_batches = {}};
  for (const auto& part : parts) {
    batch.global += batch.micro_batches.emplace_back(test::lay_out(part, row_length)).work();
  }
  return batch;
}

/// What training changes.
struct Trained {
  std::vector<float> weights;
  std::vector<float> first_moments;
  std::vector<float> second_moments;
};

/// BERT's programs on all ranks of a schedule, with the same random weights.
class BertRun {
 public:
  BertRun(const schedule::Schedule& schedule, const BertProgramOptions& options) : schedule_(schedule) {
    std::vector<StageProgram*> borrowed;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      programs_.push_back(std::make_unique<BertProgram>(schedule_, schedule::Rank::at(rank), options));
      borrowed.push_back(programs_.back().get());
      std::vector<float> weights = test::random_weights(programs_.back()->parameters(), options.model.width);
      set_weights(weights, rank);
      programs_.back()->begin(0);
      if (programs_.back()->gathers_weights()) programs_.back()->put_weights({0, weights});
    }
    due_by_clock_.resize(programs_.size());
    executor_ = std::make_unique<Executor>(schedule_, local_ranks(borrowed));
  }

  /// Without waiting for what comes of it.
  void ask_for(const batch::StepBatch& batch, double learning_rate = 1e-3) {
    if (batch.step >= BertProgram::kStepsUnderWay) {
      executor_->await_step(batch.step - BertProgram::kStepsUnderWay);
    }
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      programs_[rank]->begin_step(batch, learning_rate, due_by_clock_[rank]);
    }
    global_[batch.step % BertProgram::kStepsUnderWay] = batch.global;
    executor_->run(1);
  }
  StepOutcome step(const batch::StepBatch& batch, double learning_rate = 1e-3) {
    ask_for(batch, learning_rate);
    return outcome(batch.step);
  }
  /// Waits for the step.
  StepOutcome outcome(std::uint64_t step, std::size_t rank = 0) {
    executor_->await_step(step);
    return programs_[rank]->outcome(step, global_[step % BertProgram::kStepsUnderWay]);
  }

  /// What a rank's clock says from the next step on.
  void set_due_by_clock(std::size_t rank, const DueByClock& due) { due_by_clock_[rank] = due; }

  BertProgram& program(std::size_t rank = 0) { return *programs_[rank]; }
  /// Of all parameters; where ranks have shards, put together from them.
  std::vector<float> weights(std::size_t rank = 0) {
    if (!program(rank).buffers().are_weights_of_shard) return copy(program(rank).buffers().weights_N, rank);
    std::vector<float> whole(static_cast<std::size_t>(program(rank).parameters().num_elements()));
    for (std::size_t holder = 0; holder < programs_.size(); ++holder) {
      const std::vector<float> own = copy(program(holder).buffers().weights_N, holder);
      for (const describe::ParameterShard::Bucket& bucket : program(holder).shard().buckets())
        std::copy_n(own.begin() + bucket.begin, bucket.num_own(), whole.begin() + bucket.own.begin);
    }
    return whole;
  }
  std::vector<float> gradients(std::size_t rank = 0) {
    return copy(program(rank).buffers().gradients_N, rank);
  }
  std::vector<float> second_moments(std::size_t rank = 0) {
    return copy(program(rank).buffers().second_moments_S, rank);
  }

  /// Between steps, as set_weights().
  Trained trained(std::size_t rank = 0) {
    return {weights(rank), copy(program(rank).buffers().first_moments_S, rank), second_moments(rank)};
  }
  /// Resumes from what another run has come to after so many updates.
  void go_on_from(const Trained& state, std::uint64_t num_updates, std::size_t rank = 0) {
    const optim::OptimizerBuffers& buffers = program(rank).buffers();
    write(state.weights, buffers.weights_N, rank);
    write(state.first_moments, buffers.first_moments_S, rank);
    write(state.second_moments, buffers.second_moments_S, rank);
    program(rank).begin(num_updates);
  }

  /// Of a rank's device, in the host's memory.
  std::vector<float> copy(const tensor::TensorView& view, std::size_t rank = 0) {
    std::vector<float> values(static_cast<std::size_t>(view.num_elements()));
    tensor::copy(program(rank).stream(), view, view_of(values));
    program(rank).stream().wait();
    return values;
  }
  /// Between steps: makes the gradients of all parameters what no step should read.
  void spoil_gradients(std::size_t rank = 0) {
    std::vector<float> values = gradients(rank);
    for (const describe::Parameter& parameter : program(rank).parameters().parameters()) {
      std::fill_n(values.begin() + parameter.begin, parameter.num_elements(), NAN);
    }
    tensor::copy(program(rank).stream(), view_of(values), program(rank).buffers().gradients_N);
    program(rank).stream().wait();
  }
  /// Between steps. What the kernels of a GPU read follows with the next update, or begin().
  void set_weights(const std::vector<float>& values, std::size_t rank = 0) {
    const optim::OptimizerBuffers& buffers = program(rank).buffers();
    if (!buffers.are_weights_of_shard) return write(values, buffers.weights_N, rank);
    for (const describe::ParameterShard::Bucket& bucket : program(rank).shard().buckets()) {
      const auto own = values.begin() + bucket.own.begin;
      write({own, own + bucket.num_own()}, buffers.weights_N.rows(bucket.begin, bucket.num_own()), rank);
    }
  }

 private:
  static tensor::TensorView view_of(std::vector<float>& values) {
    return {values.data(), {static_cast<std::int64_t>(values.size())}};
  }
  void write(const std::vector<float>& values, const tensor::TensorView& to, std::size_t rank) {
    const tensor::ConstTensorView from(values.data(), {static_cast<std::int64_t>(values.size())});
    tensor::copy(program(rank).stream(), from, to);
    program(rank).stream().wait();
  }

  schedule::Schedule schedule_;
  std::vector<std::unique_ptr<BertProgram>> programs_;
  std::vector<DueByClock> due_by_clock_;
  std::array<batch::Work, BertProgram::kStepsUnderWay> global_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace plenum::pipeline
