#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plenum/batch/step_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/core/schedule.h"

#include "tests/support/wide_heads.h"

namespace plenum::pipeline {

/// The values of whole tensors by name.
using NamedValues = std::map<std::string, std::vector<float>>;

/// The weights that every run of a model begins with.
inline NamedValues first_weights(const describe::ModelConfig& model) {
  const describe::ParameterTable table(describe::describe_bert(model));
  const std::vector<float> flat = test::random_weights(table, model.width);
  NamedValues values;
  for (const describe::Parameter& parameter : table.parameters()) {
    values[parameter.name] = {flat.begin() + parameter.begin, flat.begin() + parameter.end()};
  }
  return values;
}

/// BERT's programs on all ranks of a schedule, of `num_slices` slices each, with the same weights as any
/// other such run of the model, wherever the stages lie. On the CPU.
class StagedRun {
 public:
  StagedRun(const schedule::Schedule& schedule, BertProgramOptions options, std::size_t num_slices = 1)
      : schedule_(schedule) {
    const NamedValues first = first_weights(options.model);
    std::vector<StageProgram*> borrowed;
    for (std::size_t i = 0; i < schedule_.ranks.size() * num_slices; ++i) {
      options.tensor_parallel = {.index = i % num_slices, .size = num_slices};
      programs_.push_back(
          std::make_unique<BertProgram>(schedule_, schedule::Rank::at(i / num_slices), options));
      set_weights(*programs_.back(), first);
      programs_.back()->begin(0);
      borrowed.push_back(programs_.back().get());
    }
    executor_ = std::make_unique<Executor>(schedule_, local_ranks(borrowed, num_slices));
  }

  StepOutcome step(const batch::StepBatch& batch, double learning_rate = 1e-3) {
    for (const std::unique_ptr<BertProgram>& program : programs_) program->begin_step(batch, learning_rate);
    executor_->run(1);
    executor_->await_step(batch.step);
    return programs_.front()->outcome(batch.step, batch.global);
  }

  std::size_t num_programs() const { return programs_.size(); }
  BertProgram& program(std::size_t index) { return *programs_[index]; }

  /// Of all ranks together. Where several hold a value, the last one's.
  NamedValues weights() const {
    return together([](const BertProgram& program) { return program.buffers().weights_N; });
  }
  NamedValues gradients() const {
    return together([](const BertProgram& program) { return program.buffers().gradients_N; });
  }
  /// Of one rank.
  static std::vector<float> weights_of(const BertProgram& program, const describe::Parameter& parameter) {
    const std::span<const float> flat = program.buffers().weights_N.span<float>();
    return {flat.begin() + parameter.begin, flat.begin() + parameter.end()};
  }

 private:
  static void set_weights(BertProgram& program, const NamedValues& values) {
    const std::span<float> flat = program.buffers().weights_N.span<float>();
    for (const describe::Parameter& parameter : program.parameters().parameters()) {
      const std::vector<float>& whole = values.at(parameter.name);
      describe::for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
        std::copy_n(whole.begin() + first, count, flat.begin() + parameter.begin + own);
      });
    }
  }

  template <typename BufferOf>
  NamedValues together(const BufferOf& buffer_of) const {
    NamedValues values;
    for (const std::unique_ptr<BertProgram>& program : programs_) {
      const std::span<const float> flat = buffer_of(*program).template span<float>();
      for (const describe::Parameter& parameter : program->parameters().parameters()) {
        std::vector<float>& whole = values[parameter.name];
        whole.resize(static_cast<std::size_t>(parameter.whole_shape().num_elements()));
        describe::for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
          std::copy_n(flat.begin() + parameter.begin + own, count, whole.begin() + first);
        });
      }
    }
    return values;
  }

  schedule::Schedule schedule_;
  std::vector<std::unique_ptr<BertProgram>> programs_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace plenum::pipeline
