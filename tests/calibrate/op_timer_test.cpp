#include "plenum/calibrate/op_timer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/plan/make_op.h"
#include "plenum/tensor/cuda_device.h"

namespace plenum::calibrate {
namespace {

using plan::OpKind;

plan::Op small_op(std::size_t kind) {
  const auto of_kind = static_cast<OpKind>(kind);
  // As many rows as an optimizer's parameters; a few matrices to invert.
  const double rows = of_kind == OpKind::Inverse ? 2 : 40;
  return plan::make_op(of_kind, rows, of_kind == OpKind::AttentionForward ? 16 : 64, 128, 4);
}

OpTimerOptions tiny_timer() {
  OpTimerOptions options;
  options.setting.vocabulary = 50;
  options.rotated_bytes_cpu = 1;
  options.rotated_bytes_gpu = 1;
  options.warm_up_seconds = 0;
  return options;
}

void expect_times(tensor::Device device) {
  std::vector<plan::Op> ops;
  for (std::size_t kind = 0; kind < plan::kNumOpKinds; ++kind) ops.push_back(small_op(kind));
  OpTimer timer(device, 2, ops, tiny_timer());
  for (const plan::Op& op : ops) {
    const Timing timing = timer.measure(op, 0);
    EXPECT_GT(timing.seconds, 0) << static_cast<int>(op.kind);
    EXPECT_TRUE(std::isfinite(timing.spread)) << static_cast<int>(op.kind);
    EXPECT_EQ(timing.num_runs, 3) << static_cast<int>(op.kind);
  }
}

TEST(OpTimer, TimesOpsOfEveryKind) {
  expect_times(tensor::Device::Cpu);
}

TEST(OpTimer, TimesOpsOfEveryKindOnGpu) {
  if (const auto obstacle = tensor::cuda_obstacle()) GTEST_SKIP() << *obstacle;
  expect_times(tensor::Device::Cuda);
}

TEST(OpTimer, RefusesAnOpForWhichItHasNoRoom) {
  OpTimer timer(tensor::Device::Cpu, 1, {}, tiny_timer());
  const plan::Op large = plan::make_op(OpKind::NormForward, 1 << 20, 64, 1, 4);
  EXPECT_THROW(timer.prepare(large), base::InternalError);
}

TEST(OpTimer, RefusesToTimeWhatWasNotPrepared) {
  OpTimer timer(tensor::Device::Cpu, 1, {}, tiny_timer());
  EXPECT_THROW(timer.time(0), base::InternalError);
}

TEST(Timing, IsTheMedianAndTheQuartilesAroundIt) {
  const Timing timing = timing_of({9, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(timing.seconds, 3);
  EXPECT_DOUBLE_EQ(timing.spread, (4.0 - 2.0) / 3.0);
  EXPECT_EQ(timing.num_runs, 5);
  EXPECT_DOUBLE_EQ(timing_of({1, 2}).seconds, 1.5);
  EXPECT_THROW(timing_of({}), base::InternalError);
}

}  // namespace
}  // namespace plenum::calibrate
