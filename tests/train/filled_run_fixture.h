#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/io/safetensors.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/shampoo_filler.h"
#include "plenum/schedule/text/schedule_text.h"
#include "plenum/train/prepared_data.h"
#include "plenum/train/run_plan.h"
#include "plenum/train/starting_model.h"

#include "tests/support/constant_costs.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {

inline constexpr std::uint64_t kStepsOfRun = 11;  // the last cycle is not complete

/// What ends a process without a word.
struct KilledProcess : std::runtime_error {
  KilledProcess() : std::runtime_error("killed") {}
};

/// Runs of an optimizer that does its work in the bubbles of a pipeline: K-FAC or SOAP.
class FilledRunTest : public TrainingTest {
 protected:
  explicit FilledRunTest(optim::OptimizerKind kind) : kind_(kind) {}

  RunOptions pipeline(std::string_view name, double steps = kStepsOfRun) const {
    RunOptions given = options(name, steps);
    given.model.layers = 4;
    given.run.ranks = given.run.pp = 2;
    given.run.threads = 2;
    given.data.micro_batch_tokens.reset();
    given.data.micro_batches = 4;
    given.optimizer.optimizer.kind = kind_;
    given.checkpoint.every = {2, optim::DurationUnit::Steps};
    return given;
  }

  /// One rank.
  RunOptions alone(std::string_view name) const {
    RunOptions given = pipeline(name);
    given.run.ranks = given.run.pp = given.run.threads.emplace(1);
    return given;
  }

  std::unique_ptr<RunPlan> plan_of(const RunOptions& given) {
    if (!opened_) opened_.emplace(given.data.directory);
    return std::make_unique<RunPlan>(given, *opened_, starting_model(given.model, *opened_));
  }

  static test::ConstantCosts known_costs() {
    using enum schedule::ActionType;
    return test::ConstantCosts({{Forward, 1.0},
                                {Backward, 2.0},
                                {InputGradient, 1.0},
                                {WeightGradient, 1.0},
                                {CurvatureA, 0.04},
                                {CurvatureB, 0.04},
                                {Invert, 0.5},
                                {AccumulateFactor, 0.1},
                                {InverseRoot, 0.8},
                                {Precondition, 0.1}});
  }
  schedule::FillResult filled_of(const schedule::Schedule& plain,
                                 const schedule::FillOptions& options) const {
    if (kind_ == optim::OptimizerKind::Kfac)
      return schedule::fill(plain, schedule::KfacFiller(6), known_costs(), options);
    return schedule::fill(plain, schedule::ShampooFiller(6, 1), known_costs(), options);
  }

  /// The same run by the schedule of a file; K-FAC's in cycles of kCycle steps.
  RunOptions with_file(RunOptions given) {
    const schedule::Schedule filled = filled_of(plan_of(given)->plain_schedule(), {.drains = true}).schedule;
    if (kind_ == optim::OptimizerKind::Kfac) EXPECT_EQ(filled.num_steps(), kCycle);
    given.run.schedule = directory_.write("filled.txt", schedule::print_schedule_text(filled));
    return given;
  }
  static inline constexpr std::uint64_t kCycle = 3;

  RunOptions in_directory(RunOptions given, std::string_view name) const {
    given.run.directory = directory_ / name;
    return given;
  }

  void run_killed_after(const RunOptions& given, std::uint64_t step) const {
    RecordingObserver observer;
    observer.after_step = [&](const StepReport& report) {
      if (report.step == step) throw KilledProcess();
    };
    EXPECT_THROW(train(given, observer, {}), KilledProcess);
  }

  /// The tensors of the newest checkpoint's optimizer whose names begin so.
  static std::map<std::string, std::vector<float>> states_of(const RunOptions& given,
                                                             std::string_view prefix) {
    const io::SafetensorsFile file(CheckpointStore(given.run.directory, 1).list().back() +
                                   "/optimizer.safetensors");
    std::map<std::string, std::vector<float>> states;
    for (const io::SafetensorsTensor& tensor : file.tensors()) {
      if (!tensor.name.starts_with(prefix)) continue;
      std::vector<float>& values = states[tensor.name];
      values.resize(tensor.num_elements);
      file.read(tensor, values);
    }
    return states;
  }

  optim::OptimizerKind kind_;
  std::optional<PreparedData> opened_;
};

}  // namespace plenum::train
