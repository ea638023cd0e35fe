// Ranks that hold a model together on a GPU, or shards of it, as threads of one process that share it.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/train/run_directory.h"

#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using optim::OptimizerKind;
using schedule::Sharding;

struct MeshOnGpu {
  const char* name = "";
  std::int64_t ranks = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  Sharding shard = Sharding::None;
  schedule::Recomputation recompute = schedule::Recomputation::None;
  double band = test::kBFloat16Rearranged;  ///< of gradients, beside those of one rank
};

/// The sums of slices are rounded once more than those of one rank.
constexpr double kBandOfSlices = test::kBFloat16Gradient;

constexpr MeshOnGpu kOneGpuRank{.name = "alone"};
constexpr MeshOnGpu kGpuMeshes[] = {
    {.name = "slices", .ranks = 2, .tp = 2, .band = kBandOfSlices},
    {.name = "slices of replicas", .ranks = 4, .tp = 2, .band = kBandOfSlices},
    {.name = "slices of replicas, optimizer",
     .ranks = 4,
     .tp = 2,
     .shard = Sharding::Optimizer,
     .band = kBandOfSlices},
    {.name = "slices of stages", .ranks = 4, .tp = 2, .pp = 2, .band = kBandOfSlices},
    {.name = "slices of replicas, gradients",
     .ranks = 4,
     .tp = 2,
     .shard = Sharding::Gradients,
     .band = kBandOfSlices},
    {.name = "slices of replicas, parameters",
     .ranks = 4,
     .tp = 2,
     .shard = Sharding::Parameters,
     .band = kBandOfSlices},
    {.name = "replicas, optimizer", .ranks = 2, .shard = Sharding::Optimizer},
    {.name = "replicas, gradients", .ranks = 4, .shard = Sharding::Gradients},
    {.name = "replicas, parameters", .ranks = 2, .shard = Sharding::Parameters},
    {.name = "replicas, parameters, recomputed",
     .ranks = 4,
     .shard = Sharding::Parameters,
     .recompute = schedule::Recomputation::Full},
};

class MeshesOnGpu : public test::OnGpu<TrainingTest> {
 protected:
  RunOptions options_of(const std::string& run, const MeshOnGpu& mesh, double steps) const {
    RunOptions given = options(run, steps);
    given.run.device = tensor::Device::Cuda;
    given.run.share_gpu = mesh.ranks > 1;
    given.run.ranks = mesh.ranks;
    given.run.threads = mesh.ranks;
    given.run.tp = mesh.tp;
    given.run.pp = mesh.pp;
    given.run.shard = mesh.shard;
    given.run.recompute = mesh.recompute;
    given.run.bucket_bytes = 1;  // a layer
    given.model.layers = 4;      // so many buckets that some share a place
    given.model.width = 128;
    given.model.heads = 2;
    given.model.mlp_width = 256;
    given.data.global_batch = "24";
    if (mesh.pp == 1) given.data.micro_batch_tokens = 100;  // several on every rank
    given.optimizer.learning_rate.peak = 1e-3;
    return given;
  }

  std::vector<double> losses_of(const RunOptions& given) {
    run(given);
    std::vector<double> losses;
    for (const StepReport& step : observer_.steps) losses.push_back(step.outcome.loss());
    return losses;
  }

  /// The mean of the distances of two curves, step by step.
  static double distance_of(const std::vector<double>& a, const std::vector<double>& b) {
    EXPECT_EQ(a.size(), b.size());
    double sum = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::abs(a[i] - b[i]);
    return sum / static_cast<double>(b.size());
  }
};

TEST_F(MeshesOnGpu, HaveTheGradientsOfOneRank) {
  const Gradients expected = gradients_of_step_one(options_of("alone", kOneGpuRank, 1));
  for (const MeshOnGpu& mesh : kGpuMeshes) {
    SCOPED_TRACE(mesh.name);
    const Gradients actual = gradients_of_step_one(options_of(mesh.name, mesh, 1));
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, values] : expected)
      test::expect_gradient_in_band(name, actual.at(name), values, mesh.band);
  }
}

TEST_F(MeshesOnGpu, FollowTheLossesOfOneRankAsOtherMicroBatchesDo) {
  constexpr double kSteps = 60;
  for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
    const std::string optimizer = kind == OptimizerKind::Lamb ? "lamb " : "adamw ";
    const auto with_optimizer = [&](RunOptions given) {
      given.optimizer.optimizer.kind = kind;
      return given;
    };
    const std::vector<double> expected =
        losses_of(with_optimizer(options_of(optimizer + "alone", kOneGpuRank, kSteps)));
    RunOptions other = with_optimizer(options_of(optimizer + "other", kOneGpuRank, kSteps));
    other.data.micro_batch_tokens = 400;
    const double spread = distance_of(losses_of(other), expected);
    EXPECT_GT(expected.front() - expected.back(), 0.1);
    RecordProperty(optimizer + "spread", std::to_string(spread));
    for (const MeshOnGpu& mesh : kGpuMeshes) {
      SCOPED_TRACE(optimizer + mesh.name);
      const double distance =
          distance_of(losses_of(with_optimizer(options_of(optimizer + mesh.name, mesh, kSteps))), expected);
      EXPECT_LE(distance, std::max(3 * spread, 1e-3));
      RecordProperty(optimizer + mesh.name, std::to_string(distance));
    }
  }
}

TEST_F(MeshesOnGpu, EvaluateTheWholeModel) {
  run(options_of("alone", kOneGpuRank, 10));
  const double expected = observer_.evaluations.back().second.loss();
  for (const MeshOnGpu& mesh : kGpuMeshes) {
    SCOPED_TRACE(mesh.name);
    run(options_of(mesh.name, mesh, 10));
    EXPECT_NEAR(observer_.evaluations.back().second.loss(), expected, test::kBFloat16Loss * expected);
  }
}

TEST_F(MeshesOnGpu, StoppedAndResumedEndWithTheBytesOfARunThatWasNot) {
  for (const MeshOnGpu& mesh : kGpuMeshes) {
    SCOPED_TRACE(mesh.name);
    const RunOptions whole = options_of(std::string(mesh.name) + " whole", mesh, 14);
    run(whole);
    const RunOptions parts = options_of(std::string(mesh.name) + " parts", mesh, 14);
    run_and_stop(parts, 4);
    run(parts);
    expect_same_checkpoint(parts, whole);
  }
}

TEST_F(MeshesOnGpu, WithKfacInTheirBubblesStoppedAndResumedEndWithTheBytesOfARunThatWasNot) {
  const auto filled = [&](const std::string& name) {
    RunOptions given = options_of(name, {.name = "stages", .ranks = 2, .pp = 2}, 14);
    given.optimizer.optimizer.kind = OptimizerKind::Kfac;
    return given;
  };
  const RunOptions measured = filled("measured");
  run(measured);
  RunOptions whole = filled("whole");
  whole.run.schedule = RunPaths(measured.run.directory).schedule;
  run(whole);
  expect_same_checkpoint(whole, measured);
  RunOptions parts = whole;
  parts.run.directory = directory_ / "parts";
  run_and_stop(parts, 4);
  run(parts);
  expect_same_checkpoint(parts, whole);
}

TEST_F(MeshesOnGpu, GiveTheSameBytesTwice) {
  for (const MeshOnGpu& mesh : kGpuMeshes) {
    if (mesh.shard == Sharding::None) continue;
    SCOPED_TRACE(mesh.name);
    const RunOptions one = options_of(std::string(mesh.name) + " one", mesh, 8);
    const RunOptions two = options_of(std::string(mesh.name) + " two", mesh, 8);
    run(one);
    run(two);
    expect_same_checkpoint(two, one);
  }
}

TEST_F(MeshesOnGpu, ResumeEachOthersRuns) {
  std::vector<MeshOnGpu> meshes = {kOneGpuRank};
  meshes.insert(meshes.end(), std::begin(kGpuMeshes), std::end(kGpuMeshes));
  meshes.push_back(kOneGpuRank);
  const double steps = 6 * static_cast<double>(meshes.size());
  const std::vector<double> expected = losses_of(options_of("alone", kOneGpuRank, steps));
  std::uint64_t stop = 0;
  for (const MeshOnGpu& mesh : meshes) {
    SCOPED_TRACE(mesh.name);
    stop += 6;
    run_and_stop(options_of("changing", mesh, steps), stop - 3);  // two more are under way by then
    ASSERT_FALSE(observer_.steps.empty());
    for (const StepReport& report : observer_.steps) {
      const double loss = expected[report.step - 1];
      EXPECT_NEAR(report.outcome.loss(), loss, test::kBFloat16Loss * loss) << "step " << report.step;
    }
  }
}

}  // namespace
}  // namespace plenum::train
