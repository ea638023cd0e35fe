#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plenum/pipeline/executor.h"

#include "tests/pipeline/toy_program.h"

namespace plenum::pipeline {

/// How long work would take in earnest, in layers of a forward: so that fill() has bubbles to fill.
double toy_seconds(schedule::Rank rank, const schedule::Action& action);

std::unique_ptr<ToyProgram> make_toy_program(const schedule::Schedule& schedule,
                                             const schedule::Dataflow& dataflow, schedule::Rank rank);

/// A schedule with a toy program for each rank and an executor, ready to run.
class ToyRun {
 public:
  using MakeProgram = std::function<std::unique_ptr<ToyProgram>(const schedule::Schedule&,
                                                                const schedule::Dataflow&, schedule::Rank)>;

  /// Of each rank, in order; of the executor's own making if there are none.
  using Communicators = std::vector<std::unique_ptr<comm::Communicator>>;

  /// Borrows the schedule.
  explicit ToyRun(const schedule::Schedule& schedule, ExecutorOptions options = {},
                  const MakeProgram& make_program = &make_toy_program, Communicators communicators = {});

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
                                   ExecutorOptions options = {}, ToyRun::Communicators communicators = {},
                                   const ToyRun::MakeProgram& make_program = &make_toy_program);

}  // namespace plenum::pipeline
