// Layer-wise learning-rate decay: layers lie on any ranks, and their rates stay those of the model's layers.

#include <cmath>

#include <fmt/format.h>

#include "tests/train/arrangement.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using optim::OptimizerKind;

constexpr double kTolerance = 1e-4;

constexpr Arrangement kAlone = {
    .name = "alone", .layout = data::Layout::Unpadded, .ranks = 1, .micro_batch_tokens = 2000, .layers = 4};

constexpr Arrangement on_ranks(const char* name, std::int64_t ranks, std::int64_t tp,
                               schedule::Sharding shard, std::int64_t pp = 1, const char* schedule = "") {
  return {.name = name,
          .layout = data::Layout::Unpadded,
          .ranks = ranks,
          .micro_batch_tokens = 72,
          .tp = tp,
          .shard = shard,
          .pp = pp,
          .schedule = schedule,
          .layers = 4};
}

constexpr Arrangement kArrangements[] = {
    on_ranks("shards", 3, 1, schedule::Sharding::Optimizer),
    on_ranks("shards of parameters", 2, 1, schedule::Sharding::Parameters),
    on_ranks("a model on two ranks", 2, 2, schedule::Sharding::None),
    on_ranks("a pipeline", 2, 1, schedule::Sharding::None, 2, "1f1b"),
    on_ranks("interleaved stages", 2, 1, schedule::Sharding::None, 2, "interleaved"),
};

class LayerDecay : public TrainingTest {
 protected:
  std::vector<double> losses(const Arrangement& arrangement, OptimizerKind kind, double layer_decay) {
    RunOptions given =
        arranged(options(fmt::format("{} {} {}", arrangement.name, static_cast<int>(kind), layer_decay), 10),
                 arrangement);
    given.optimizer.learning_rate.peak = 1e-2;
    given.optimizer.optimizer.kind = kind;
    given.optimizer.optimizer.layer_decay = layer_decay;
    run(given);
    std::vector<double> losses;
    for (const StepReport& step : observer_.steps) losses.push_back(step.outcome.loss());
    return losses;
  }
};

TEST_F(LayerDecay, GivesTheSameCurveHoweverTheModelIsDivided) {
  for (const OptimizerKind kind : {OptimizerKind::AdamW, OptimizerKind::Lamb}) {
    const std::vector<double> expected = losses(kAlone, kind, 0.5);
    ASSERT_GT(std::abs(losses(kAlone, kind, 1).back() - expected.back()), 10 * kTolerance * expected.back())
        << "without it the curve is another one";
    for (const Arrangement& arrangement : kArrangements) {
      SCOPED_TRACE(arrangement.name);
      const std::vector<double> found = losses(arrangement, kind, 0.5);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t step = 0; step < found.size(); ++step)
        EXPECT_NEAR(found[step], expected[step], kTolerance * expected[step]) << "step " << step + 1;
    }
  }
}

}  // namespace
}  // namespace plenum::train
