#include "plenum/pipeline/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/schedule/generator.h"

#include "tests/pipeline/toy_run.h"

namespace plenum::pipeline {
namespace {

using schedule::generator_named;
using schedule::GeneratorOptions;
using schedule::Recomputation;
using schedule::Schedule;
using schedule::Sharding;

TEST(Executor, GivesWhatTheSerialComputationGives) {
  const Schedule schedule = generator_named("1f1b").generate(
      {.depth = 2, .num_micro_batches = 3, .num_replicas = 1, .stage_layers = {2}});
  EXPECT_EQ(difference_from_serial(schedule, 3), "");
}

}  // namespace
}  // namespace plenum::pipeline
