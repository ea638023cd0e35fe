#include "plenum/calibrate/calibration.h"

#include <array>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/plan/make_op.h"

namespace plenum::calibrate {
namespace {

using plan::OpKind;

OpTimerOptions tiny() {
  OpTimerOptions options;
  options.setting.vocabulary = 50;
  options.rotated_bytes_cpu = 1;
  return options;
}

std::vector<plan::Op> some_ops() {
  return {plan::make_op(OpKind::ProductForward, 32, 16, 48, 4),
          plan::make_op(OpKind::NormForward, 32, 16, 1, 4),
          plan::make_op(OpKind::ProductForward, 64, 16, 48, 4)};
}

TEST(Calibrate, MeasuresTheOpsThatAreAskedForOnBusyRanks) {
  CalibrationOptions options;
  options.ranks = 2;
  options.seconds = 1000;
  options.seconds_of_op = 1e-3;
  options.timer = tiny();
  options.links = {.sizes = {1024, 4096}, .seconds = 0};
  options.ops = some_ops();
  const Setting setting = calibrate(options);
  EXPECT_EQ(setting.ranks, 2);
  EXPECT_GT(setting.model.peak_flops, 0);
  EXPECT_GT(setting.model.peak_bytes_per_second, 0);
  EXPECT_GT(setting.model.launch_seconds, 0);
  EXPECT_EQ(setting.links.size(), kNumLinkOperations);
  EXPECT_EQ(setting.num_left_out, 0);
  EXPECT_EQ(setting.model.points(OpKind::ProductForward).size(), 2);
  EXPECT_EQ(setting.model.points(OpKind::NormForward).size(), 1);
  EXPECT_TRUE(setting.model.points(OpKind::Lamb).empty());
  EXPECT_EQ(setting.spreads.points[static_cast<std::size_t>(OpKind::ProductForward)].size(), 2);
}

TEST(Calibrate, LeavesOutWhatThereIsNoTimeFor) {
  CalibrationOptions options;
  options.seconds = 0;
  options.timer = tiny();
  options.ops = some_ops();
  const Setting setting = calibrate(options);
  EXPECT_EQ(setting.num_left_out, 3);
  EXPECT_TRUE(setting.links.empty());
  EXPECT_GT(setting.model.peak_flops, 0);
}

TEST(Calibrate, RefusesSeveralRanksOfAGpu) {
  CalibrationOptions options;
  options.device = tensor::Device::Cuda;
  options.ranks = 2;
  options.links = {.sizes = {1024, 4096}, .seconds = 0};
  EXPECT_THROW(calibrate(options), base::UserError);
}

TEST(CalibrateOps, MeasuresEachSizeOnce) {
  std::vector<plan::Op> ops = some_ops();
  ops.push_back(ops.front());
  ops.back().count = 7;
  const plan::DeviceModel model = calibrate_ops(ops, tensor::Device::Cpu, 1, 2, 0.01, tiny());
  EXPECT_EQ(model.points(OpKind::ProductForward).size(), 2);
  EXPECT_EQ(model.points(OpKind::NormForward).size(), 1);
}

TEST(CalibrateOps, MeasuresLargeOpsWithFewerRowsAndCallsThemByTheirSize) {
  const std::vector<plan::Op> ops = {plan::make_op(OpKind::ProductForward, 1 << 20, 64, 64, 4)};
  const plan::DeviceModel model = calibrate_ops(ops, tensor::Device::Cpu, 1, 1, 0.001, tiny());
  ASSERT_EQ(model.points(OpKind::ProductForward).size(), 1);
  EXPECT_EQ(model.points(OpKind::ProductForward).front().rows, 1 << 20);
}

TEST(CalibrateOps, PredictsWhatItMeasured) {
  const std::vector<plan::Op> ops = some_ops();
  const plan::DeviceModel model = calibrate_ops(ops, tensor::Device::Cpu, 1, 1, 0.01, tiny());
  int num_compared = 0;
  for (const plan::Op& op : ops) {
    for (const plan::EfficiencyPoint& point : model.points(op.kind)) {
      if (point.rows != op.rows || point.in != op.in || point.out != op.out) continue;
      EXPECT_DOUBLE_EQ(model.seconds(op).total(), model.limit_seconds(op) / point.efficiency);
      ++num_compared;
    }
  }
  EXPECT_EQ(num_compared, 3);
}

TEST(CalibrationGrid, HasEveryKindOnBothDevicesAndNoSizeTwice) {
  for (const tensor::Device device : {tensor::Device::Cpu, tensor::Device::Cuda}) {
    std::array<bool, plan::kNumOpKinds> is_there{};
    std::set<std::tuple<OpKind, double, double, double>> sizes;
    for (const plan::Op& op : calibration_grid(device)) {
      is_there[static_cast<std::size_t>(op.kind)] = true;
      EXPECT_TRUE(sizes.insert({op.kind, op.rows, op.in, op.out}).second)
          << static_cast<int>(op.kind) << " " << op.rows << " " << op.in << " " << op.out;
    }
    for (std::size_t kind = 0; kind < plan::kNumOpKinds; ++kind) EXPECT_TRUE(is_there[kind]) << kind;
  }
}

TEST(DefaultSettings, GoFromOneRankToOneForEachCore) {
  EXPECT_EQ(default_settings(1), (std::vector<RanksAndThreads>{{1, 1}}));
  EXPECT_EQ(default_settings(2), (std::vector<RanksAndThreads>{{1, 2}, {2, 1}}));
  EXPECT_EQ(default_settings(6), (std::vector<RanksAndThreads>{{1, 6}, {2, 3}, {4, 1}, {6, 1}}));
}

}  // namespace
}  // namespace plenum::calibrate
