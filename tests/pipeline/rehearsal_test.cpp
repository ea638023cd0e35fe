#include "plenum/pipeline/rehearsal.h"

#include <gtest/gtest.h>

#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/simulate.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/trace/overlay.h"

#include "tests/support/constant_costs.h"
#include "tests/support/expect_user_error.h"

namespace plenum::pipeline {
namespace {

using schedule::ActionType;

const test::ConstantCosts kCosts({{ActionType::Forward, 0.002},
                                  {ActionType::Backward, 0.004},
                                  {ActionType::InputGradient, 0.002},
                                  {ActionType::WeightGradient, 0.002},
                                  {ActionType::CurvatureA, 0.0005},
                                  {ActionType::CurvatureB, 0.0005},
                                  {ActionType::Invert, 0.002},
                                  {ActionType::Precondition, 0.0005}});

/// Lays what a rehearsal measured over what is predicted: the same actions in the same order, none shorter
/// than predicted (a sleep never is).
void expect_same_actions(const schedule::Schedule& schedule) {
  const schedule::Simulation simulation = schedule::simulate(schedule, kCosts);
  const trace::Timeline predicted = schedule::timeline_of(schedule, simulation.replay.times, "predicted");
  const trace::Timeline measured = schedule::timeline_of(schedule, rehearse(schedule, kCosts, 2), "measured");
  const trace::Overlay overlay = trace::lay_over(predicted, measured);
  ASSERT_EQ(overlay.errors.size(), predicted.spans.size());
  for (std::size_t i = 0; i < predicted.spans.size(); ++i) {
    EXPECT_GE(overlay.errors[i].duration_seconds, -1e-6) << predicted.labels[predicted.spans[i].label];
  }
  EXPECT_GE(overlay.measured_step_seconds, overlay.predicted_step_seconds * (1 - 1e-6));
}

TEST(Rehearsal, MeasuresTheActionsThatAreSimulated) {
  for (const char* name : {"1f1b", "chimera", "zb-h1"}) {
    SCOPED_TRACE(name);
    expect_same_actions(schedule::generator_named(name).generate(
        {.depth = 2, .num_micro_batches = 2, .num_replicas = 2, .stage_layers = {1}}));
  }
}

TEST(Rehearsal, RunsAFilledCycle) {
  const schedule::Schedule base =
      schedule::generator_named("gpipe").generate({.depth = 2, .num_micro_batches = 2, .stage_layers = {1}});
  expect_same_actions(schedule::fill(base, schedule::KfacFiller(2), kCosts, {.max_cycle_steps = 4}).schedule);
}

TEST(Rehearsal, RefusesMoreRanksThanItHasRoomFor) {
  const schedule::Schedule schedule = schedule::generator_named("gpipe").generate(
      {.depth = kMostRehearsedRanks + 1, .num_micro_batches = 1, .stage_layers = {1}});
  test::expect_user_error([&] { rehearse(schedule, kCosts, 1); }, "room for 64 ranks");
}

}  // namespace
}  // namespace plenum::pipeline
