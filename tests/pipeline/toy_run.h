#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plenum/pipeline/executor.h"

#include "tests/pipeline/toy_program.h"

namespace plenum::pipeline {

/// A schedule with a toy program for each rank and an executor, ready to run.
class ToyRun {
 public:
  /// Borrows the schedule.
  explicit ToyRun(const schedule::Schedule& schedule, ExecutorOptions options = {});

  Executor& executor() { return *executor_; }
  std::vector<std::unique_ptr<ToyProgram>>& programs() { return programs_; }

  /// All that the ranks hold after a run, for comparison of two runs.
  Values everything() const;

 private:
  const schedule::Schedule& schedule_;
  schedule::Dataflow dataflow_;
  std::vector<std::unique_ptr<ToyProgram>> programs_;
  std::unique_ptr<Executor> executor_;
};

/// Runs a schedule and the serial reference for some steps and gives the first thing in which they differ by
/// more than 1e-12 of its size: losses, parameters, gradients, K-FAC factors, on every rank. Empty if they
/// agree. What the executor throws is the difference then.
std::string difference_from_serial(const schedule::Schedule& schedule, std::uint64_t num_steps,
                                   ExecutorOptions options = {});

}  // namespace plenum::pipeline
