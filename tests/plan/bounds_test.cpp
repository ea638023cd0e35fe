#include "plenum/plan/bounds.h"

#include <gtest/gtest.h>

#include "plenum/plan/candidate_bounds.h"
#include "plenum/plan/search.h"

#include "tests/plan/made_up_run.h"

namespace plenum::plan {
namespace {

using test::MadeUp;
using test::MadeUpSteps;

/// How much of what was found bounds reach, in the mean over strategies.
struct Reach {
  double seconds = 0;
  double bytes = 0;
  std::size_t count = 0;
};

/// How the optimizer of a seed works on matrices.
MatrixWork made_up_work(MadeUp& made_up, schedule::Preconditioner kind, tensor::Device device) {
  const bool may_fill = kind == schedule::Preconditioner::Kfac ||
                        (kind == schedule::Preconditioner::Shampoo && device == tensor::Device::Cpu);
  MatrixWork work{.kind = kind,
                  .every = static_cast<std::size_t>(made_up.number(1, 5)),
                  .soap_limit = made_up.number(64, 1024)};
  if (may_fill && made_up.coin())
    work.fill =
        kind == schedule::Preconditioner::Kfac && made_up.coin() ? BubbleFill::Fresh : BubbleFill::Deferred;
  return work;
}

void compare(std::uint64_t seed, Reach& reach,
             schedule::Preconditioner kind = schedule::Preconditioner::None) {
  MadeUp made_up(seed);
  const tensor::Device device = made_up.coin() ? tensor::Device::Cpu : tensor::Device::Cuda;
  const Cluster cluster = made_up.cluster(device);
  const MadeUpSteps sampler = made_up.steps();
  const StrategyRequest request{
      .model = made_up.model(),
      .num_ranks =
          std::min<std::size_t>(made_up.one_of<std::size_t>({1, 2, 3, 4, 6, 8}), cluster.num_devices()),
      .update = made_up.coin() ? UpdateRule::AdamW : UpdateRule::Lamb,
      .matrices = kind == schedule::Preconditioner::None ? MatrixWork() : made_up_work(made_up, kind, device),
      .reduce_dtype = made_up.number(0, 3) == 0 ? tensor::DType::BFloat16 : tensor::DType::Float32};
  SearchOptions options{.num_steps = 2, .most_replicas = 2 + static_cast<std::size_t>(made_up.number(0, 2))};
  const std::vector<Candidate> candidates = enumerate(request, test::small_grid(), sampler, cluster);
  if (candidates.empty()) return;
  CandidateBounds bounds(request, sampler, cluster, options.num_steps, options.most_replicas);
  for (int i = 0; i < 12; ++i) {
    const Candidate candidate = made_up.one_of(candidates);
    const Plan plan = plan_of(candidate, request, sampler, cluster, options);
    const double seconds = bounds.least_seconds(candidate);
    const double bytes = bounds.least_bytes(candidate);
    constexpr double kRounding = 1 + 1e-9;
    ASSERT_LE(seconds, plan.step.seconds * kRounding)
        << "seed " << seed << ": " << strategy_text(candidate.strategy) << " of "
        << request.model.layers.size() << " layers on device " << static_cast<int>(device) << ", matrices "
        << static_cast<int>(kind) << " every " << request.matrices.every << " fill "
        << static_cast<int>(request.matrices.fill);
    const auto planned = static_cast<double>(plan.memory.peak_bytes());
    ASSERT_LE(bytes, planned) << "seed " << seed << ": " << strategy_text(candidate.strategy);
    reach.seconds += seconds / plan.step.seconds;
    reach.bytes += bytes / planned;
    ++reach.count;
  }
}

TEST(Bounds, NeverExceedWhatIsSimulatedAndPlanned) {
  Reach reach;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    compare(seed, reach);
    if (testing::Test::HasFatalFailure()) return;
  }
  ASSERT_GT(reach.count, 1500U);
  // A bound of zero would not exceed anything either.
  const auto count = static_cast<double>(reach.count);
  EXPECT_GT(reach.seconds / count, 0.5);
  EXPECT_GT(reach.bytes / count, 0.3);
  RecordProperty("seconds_reach", std::to_string(reach.seconds / count));
  RecordProperty("bytes_reach", std::to_string(reach.bytes / count));
}

TEST(Bounds, NeverExceedWhatIsSimulatedAndPlannedWithWorkOnMatrices) {
  for (const auto kind :
       {schedule::Preconditioner::Kfac, schedule::Preconditioner::Muon, schedule::Preconditioner::Shampoo}) {
    Reach reach;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      compare(seed, reach, kind);
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_GT(reach.count, 200U);
    const auto count = static_cast<double>(reach.count);
    EXPECT_GT(reach.seconds / count, 0.4) << static_cast<int>(kind);
    EXPECT_GT(reach.bytes / count, 0.15) << static_cast<int>(kind);
    RecordProperty("seconds_reach_" + std::to_string(static_cast<int>(kind)),
                   std::to_string(reach.seconds / count));
  }
}

TEST(Bounds, DISABLED_SoakNeverExceedWhatIsSimulatedAndPlanned) {
  Reach reach;
  for (std::uint64_t seed = 1000; seed < 5000; ++seed) {
    compare(seed, reach);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Bounds, DISABLED_SoakWithWorkOnMatrices) {
  Reach reach;
  for (const auto kind :
       {schedule::Preconditioner::Kfac, schedule::Preconditioner::Muon, schedule::Preconditioner::Shampoo}) {
    for (std::uint64_t seed = 1000; seed < 2000; ++seed) {
      compare(seed, reach, kind);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Bounds, AddUpOverLayers) {
  const LayerSums sums{.first = 5, .middle = 2, .last = 3};
  EXPECT_EQ(sums.of(0, 4, 4), 5 + 2 + 2 + 3);
  EXPECT_EQ(sums.of(0, 1, 4), 5);
  EXPECT_EQ(sums.of(1, 3, 4), 4);
  EXPECT_EQ(sums.of(3, 4, 4), 3);
  EXPECT_EQ(sums.of(2, 2, 4), 0);
  EXPECT_EQ(LayerSums{.first = 7}.of(0, 1, 1), 7);
}

}  // namespace
}  // namespace plenum::plan
