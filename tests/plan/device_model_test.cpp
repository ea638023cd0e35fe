#include "plenum/plan/device_model.h"

#include <cmath>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::plan {
namespace {

/// A device of 1 GFLOP/s, 1 GB/s and 1 us.
DeviceModel device() {
  DeviceModel model;
  model.peak_flops = 1e9;
  model.peak_bytes_per_second = 1e9;
  model.launch_seconds = 1e-6;
  for (std::size_t i = 0; i < kNumOpKinds; ++i) model.set_default_efficiency(static_cast<OpKind>(i), 1);
  return model;
}

TEST(DeviceModel, TakesTheLargestOfThreeTimes) {
  const DeviceModel model = device();
  const OpSeconds compute = model.seconds({.flops = 5000, .bytes = 4000});
  EXPECT_DOUBLE_EQ(compute.compute, 5e-6);
  EXPECT_EQ(compute.total(), compute.compute);
  const OpSeconds memory = model.seconds({.flops = 5000, .bytes = 6000});
  EXPECT_DOUBLE_EQ(memory.memory, 6e-6);
  EXPECT_EQ(memory.total(), memory.memory);
  const OpSeconds launch = model.seconds({.flops = 500, .bytes = 600});
  EXPECT_DOUBLE_EQ(launch.launch, 1e-6);
  EXPECT_EQ(launch.total(), launch.launch);
  EXPECT_DOUBLE_EQ(model.limit_seconds({.flops = 5000, .bytes = 6000, .count = 3}), 6e-6);
}

TEST(DeviceModel, CountsEachOfSeveralOperations) {
  const DeviceModel model = device();
  EXPECT_DOUBLE_EQ(model.seconds({.flops = 5000, .count = 12}).compute, 60e-6);
  EXPECT_DOUBLE_EQ(model.seconds({.flops = 10, .count = 12}).launch, 12e-6);
}

TEST(DeviceModel, DividesTheLimitByTheDefaultEfficiencyWhereNothingWasMeasured) {
  DeviceModel model = device();
  model.set_default_efficiency(OpKind::ProductForward, 0.25);
  EXPECT_DOUBLE_EQ(model.seconds({.flops = 5000}).compute, 20e-6);
  EXPECT_DOUBLE_EQ(model.seconds({.kind = OpKind::NormForward, .bytes = 5000}).memory, 5e-6);
  EXPECT_DOUBLE_EQ(model.default_efficiency(OpKind::ProductForward), 0.25);
}

TEST(DeviceModel, GivesAMeasuredSizeItsOwnEfficiency) {
  DeviceModel model = device();
  model.set_points(OpKind::ProductForward, {{.rows = 64, .in = 768, .out = 768, .efficiency = 0.3},
                                            {.rows = 4096, .in = 768, .out = 768, .efficiency = 0.9},
                                            {.rows = 4096, .in = 768, .out = 3072, .efficiency = 1.25}});
  EXPECT_EQ(model.points(OpKind::ProductForward).size(), 3U);
  EXPECT_EQ(model.efficiency({.rows = 64, .in = 768, .out = 768}), 0.3);
  EXPECT_EQ(model.efficiency({.rows = 4096, .in = 768, .out = 3072}), 1.25);
  // A kind that was not measured keeps its default.
  EXPECT_EQ(model.efficiency({.kind = OpKind::MlpForward, .rows = 64, .in = 768, .out = 768}), 1);
}

TEST(DeviceModel, WeighsMeasuredSizesByTheFourthPowerOfTheirDistanceInOctaves) {
  DeviceModel model = device();
  model.set_points(OpKind::ProductForward, {{.rows = 16, .in = 8, .out = 8, .efficiency = 0.2},
                                            {.rows = 128, .in = 8, .out = 8, .efficiency = 0.8}});
  // One octave from the first, two from the second: weights 1 and 1/16.
  EXPECT_DOUBLE_EQ(model.efficiency({.rows = 32, .in = 8, .out = 8}), (0.2 + 0.8 / 16) / (1 + 1.0 / 16));
  // Half way in octaves, though not in rows.
  EXPECT_DOUBLE_EQ(model.efficiency({.rows = std::sqrt(16.0 * 128.0), .in = 8, .out = 8}), 0.5);
  // Another size counts as much: one octave in each of two is the square root of two from the first, and
  // from the second the root of 4 + 1.
  EXPECT_NEAR(model.efficiency({.rows = 32, .in = 16, .out = 8}), (0.2 / 4 + 0.8 / 25) / (1.0 / 4 + 1.0 / 25),
              1e-15);
  // Far away, neither nearer than the other.
  EXPECT_NEAR(model.efficiency({.rows = 1e12, .in = 8, .out = 1e30}), 0.5, 0.1);
}

TEST(DeviceModel, StaysBetweenWhatWasMeasuredAndChangesWithoutJumps) {
  DeviceModel model = device();
  model.set_points(OpKind::MlpForward, {{.rows = 32, .in = 64, .out = 256, .efficiency = 0.1},
                                        {.rows = 300, .in = 100, .out = 256, .efficiency = 0.7},
                                        {.rows = 4000, .in = 64, .out = 300, .efficiency = 0.4}});
  double before = model.efficiency({.kind = OpKind::MlpForward, .rows = 1, .in = 80, .out = 256});
  for (double rows = 1; rows < 1e5; rows *= 1.005) {
    const double now = model.efficiency({.kind = OpKind::MlpForward, .rows = rows, .in = 80, .out = 256});
    EXPECT_GE(now, 0.1);
    EXPECT_LE(now, 0.7);
    EXPECT_NEAR(now, before, 0.02) << rows;
    before = now;
  }
}

TEST(DeviceModel, RefusesWhatNoDeviceHas) {
  DeviceModel model;
  EXPECT_THROW(static_cast<void>(model.seconds({.flops = 1})), base::InternalError);
  EXPECT_THROW(static_cast<void>(model.seconds({.bytes = 1})), base::InternalError);
  EXPECT_THROW(model.set_default_efficiency(OpKind::Fill, 0), base::InternalError);
  EXPECT_THROW(model.set_points(OpKind::Fill, {{.efficiency = -1}}), base::InternalError);
}

}  // namespace
}  // namespace plenum::plan
