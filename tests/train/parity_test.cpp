#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/train/arrangement.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

// All of these are the same run to rounding, with dropout on.
constexpr Arrangement kArrangements[] = {
    {"unpadded, one micro-batch", data::Layout::Unpadded, 1, 2000},
    {"unpadded", data::Layout::Unpadded, 1, 72},
    {"unpadded, two ranks", data::Layout::Unpadded, 2, 72},
    {"padded", data::Layout::Padded, 1, 96},
    {"padded, two ranks", data::Layout::Padded, 2, 96},
    {"packed", data::Layout::Packed, 1, 96},
    {"packed, two ranks", data::Layout::Packed, 2, 96},
    {"unpadded, a model on two ranks", data::Layout::Unpadded, 2, 72, 2},
    {"padded, a model on two ranks", data::Layout::Padded, 2, 96, 2},
    {"packed, a model on two ranks", data::Layout::Packed, 2, 96, 2},
    {"unpadded, a model on four ranks", data::Layout::Unpadded, 4, 72, 4},
    {"padded, a model on four ranks", data::Layout::Padded, 4, 96, 4},
    {"packed, a model on four ranks", data::Layout::Packed, 4, 96, 4},
    {"unpadded, two models on two ranks each", data::Layout::Unpadded, 4, 72, 2},
    {"padded, two models on two ranks each", data::Layout::Padded, 4, 96, 2},
    {"packed, two models on two ranks each", data::Layout::Packed, 4, 96, 2},
    {"unpadded, four ranks, optimizer sharded", data::Layout::Unpadded, 4, 72, 1,
     schedule::Sharding::Optimizer},
    {"padded, two ranks, optimizer sharded", data::Layout::Padded, 2, 96, 1, schedule::Sharding::Optimizer},
    {"packed, two ranks, optimizer sharded", data::Layout::Packed, 2, 96, 1, schedule::Sharding::Optimizer},
    {"unpadded, two models on two ranks each, optimizer sharded", data::Layout::Unpadded, 4, 72, 2,
     schedule::Sharding::Optimizer},
    {"unpadded, two ranks, gradients sharded", data::Layout::Unpadded, 2, 72, 1,
     schedule::Sharding::Gradients},
    {"padded, four ranks, gradients sharded", data::Layout::Padded, 4, 96, 1, schedule::Sharding::Gradients},
    {"packed, two ranks, gradients sharded", data::Layout::Packed, 2, 96, 1, schedule::Sharding::Gradients},
    {"unpadded, two models on two ranks each, gradients sharded", data::Layout::Unpadded, 4, 72, 2,
     schedule::Sharding::Gradients},
    {"unpadded, four ranks, parameters sharded", data::Layout::Unpadded, 4, 72, 1,
     schedule::Sharding::Parameters},
    {"padded, two ranks, parameters sharded", data::Layout::Padded, 2, 96, 1, schedule::Sharding::Parameters},
    {"packed, two ranks, parameters sharded", data::Layout::Packed, 2, 96, 1, schedule::Sharding::Parameters},
    {"unpadded, two models on two ranks each, parameters sharded", data::Layout::Unpadded, 4, 72, 2,
     schedule::Sharding::Parameters},
};

constexpr Arrangement piped(const char* name, data::Layout layout, const char* schedule, std::int64_t ranks,
                            std::int64_t pp, std::int64_t tp = 1) {
  return {.name = name,
          .layout = layout,
          .ranks = ranks,
          .micro_batch_tokens = layout == data::Layout::Unpadded ? 72 : 96,
          .tp = tp,
          .pp = pp,
          .schedule = schedule,
          .layers = 4};
}

// Any two of schedule, layout and mesh meet in one of them.
constexpr Arrangement kPipelines[] = {
    {.name = "no pipeline",
     .layout = data::Layout::Unpadded,
     .ranks = 1,
     .micro_batch_tokens = 2000,
     .layers = 4},
    piped("gpipe, two stages", data::Layout::Unpadded, "gpipe", 2, 2),
    piped("gpipe, four stages", data::Layout::Padded, "gpipe", 4, 4),
    piped("gpipe, two pipelines", data::Layout::Packed, "gpipe", 4, 2),
    piped("gpipe, stages on two ranks each", data::Layout::Unpadded, "gpipe", 4, 2, 2),
    piped("1f1b, two stages", data::Layout::Packed, "1f1b", 2, 2),
    piped("1f1b, four stages", data::Layout::Unpadded, "1f1b", 4, 4),
    piped("1f1b, two pipelines", data::Layout::Padded, "1f1b", 4, 2),
    piped("1f1b, stages on two ranks each", data::Layout::Packed, "1f1b", 4, 2, 2),
    piped("1f1b, two pipelines of stages on two ranks each", data::Layout::Unpadded, "1f1b", 8, 2, 2),
    piped("interleaved, two ranks", data::Layout::Padded, "interleaved", 2, 2),
    piped("interleaved, two pipelines", data::Layout::Unpadded, "interleaved", 4, 2),
    piped("interleaved, stages on two ranks each", data::Layout::Packed, "interleaved", 4, 2, 2),
    piped("chimera, two ranks", data::Layout::Unpadded, "chimera", 2, 2),
    piped("chimera, four ranks", data::Layout::Packed, "chimera", 4, 4),
    piped("chimera, twice", data::Layout::Padded, "chimera", 4, 2),
    piped("chimera, stages on two ranks each", data::Layout::Padded, "chimera", 4, 2, 2),
    piped("zb-h1, two stages", data::Layout::Padded, "zb-h1", 2, 2),
    piped("zb-h1, four stages", data::Layout::Packed, "zb-h1", 4, 4),
    piped("zb-h1, two pipelines", data::Layout::Unpadded, "zb-h1", 4, 2),
    piped("zb-h1, stages on two ranks each", data::Layout::Padded, "zb-h1", 4, 2, 2),
};

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

void expect_same_gradients(const Gradients& gradients, const Gradients& expected) {
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(gradients.size(), expected.size());
  for (const auto& [name, values] : expected) {
    // A key's bias shifts all scores of a query alike, which softmax takes back.
    const double largest = largest_of(values);
    EXPECT_EQ(largest == 0, name.ends_with("key.bias")) << name;
    std::vector<float> errors(values.size());
    std::ranges::transform(gradients.at(name), values, errors.begin(), std::minus());
    EXPECT_LE(largest_of(errors), 1e-5 * largest) << name;
  }
}

class ParityTest : public TrainingTest {
 protected:
  RunOptions options_of(const Arrangement& arrangement, data::Objective objective, double steps) const {
    RunOptions given = arranged(options(std::string("run ") + arrangement.name, steps), arrangement);
    given.data.directory = objective == data::Objective::WithNextSentence ? pairs_ : dataset_;
    return given;
  }

  std::vector<StepReport> steps_of(const Arrangement& arrangement, data::Objective objective) {
    run(options_of(arrangement, objective, 20));
    return observer_.steps;
  }

  Gradients gradients_of(const Arrangement& arrangement, data::Objective objective) {
    return gradients_of_step_one(options_of(arrangement, objective, 1));
  }

  /// With the first of them.
  void expect_all_equal(std::span<const Arrangement> arrangements, data::Objective objective) {
    const std::vector<StepReport> expected = steps_of(arrangements.front(), objective);
    for (const Arrangement& arrangement : arrangements.subspan(1)) {
      const std::vector<StepReport> steps = steps_of(arrangement, objective);
      ASSERT_EQ(steps.size(), expected.size());
      for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_NEAR(steps[i].outcome.loss(), expected[i].outcome.loss(), 1e-4 * expected[i].outcome.loss())
            << arrangement.name << ", step " << i + 1;
        EXPECT_EQ(steps[i].work.tokens, expected[i].work.tokens);
      }
      EXPECT_NEAR(steps[0].outcome.gradient_norm, expected[0].outcome.gradient_norm,
                  1e-5 * expected[0].outcome.gradient_norm)
          << arrangement.name;
      // Pairs are cut to fill the longest sequence; other sequences leave room.
      const bool has_padding =
          arrangement.layout != data::Layout::Unpadded && objective == data::Objective::MaskedLanguageModel;
      EXPECT_EQ(steps[0].padded_tokens > 0, has_padding) << arrangement.name;
    }
  }

  void expect_all_same_gradients(std::span<const Arrangement> arrangements, data::Objective objective) {
    const Gradients expected = gradients_of(arrangements.front(), objective);
    for (const Arrangement& arrangement : arrangements.subspan(1)) {
      SCOPED_TRACE(arrangement.name);
      expect_same_gradients(gradients_of(arrangement, objective), expected);
    }
  }

  std::string pairs_ = prepare("pairs", data::Objective::WithNextSentence);
};

TEST_F(ParityTest, LayoutsRanksAndMicroBatchesTrainTheSame) {
  expect_all_equal(kArrangements, data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyDoWithNextSentences) {
  expect_all_equal(kArrangements, data::Objective::WithNextSentence);
}

TEST_F(ParityTest, LayoutsRanksAndMicroBatchesHaveTheSameGradientsOfEveryParameter) {
  expect_all_same_gradients(kArrangements, data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyHaveWithNextSentences) {
  expect_all_same_gradients(kArrangements, data::Objective::WithNextSentence);
}

TEST_F(ParityTest, PipelinesTrainTheSame) {
  expect_all_equal(kPipelines, data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyDoWithNextSentencesInStages) {
  expect_all_equal(kPipelines, data::Objective::WithNextSentence);
}

TEST_F(ParityTest, PipelinesHaveTheSameGradientsOfEveryParameter) {
  expect_all_same_gradients(kPipelines, data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyHaveWithNextSentencesInStages) {
  expect_all_same_gradients(kPipelines, data::Objective::WithNextSentence);
}

}  // namespace
}  // namespace plenum::train
