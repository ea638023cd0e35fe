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

  void expect_all_equal(data::Objective objective) {
    const std::vector<StepReport> expected = steps_of(kArrangements[0], objective);
    for (const Arrangement& arrangement : std::span(kArrangements).subspan(1)) {
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

  void expect_all_same_gradients(data::Objective objective) {
    const Gradients expected = gradients_of(kArrangements[0], objective);
    for (const Arrangement& arrangement : std::span(kArrangements).subspan(1)) {
      SCOPED_TRACE(arrangement.name);
      expect_same_gradients(gradients_of(arrangement, objective), expected);
    }
  }

  std::string pairs_ = prepare("pairs", data::Objective::WithNextSentence);
};

TEST_F(ParityTest, LayoutsRanksAndMicroBatchesTrainTheSame) {
  expect_all_equal(data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyDoWithNextSentences) {
  expect_all_equal(data::Objective::WithNextSentence);
}

TEST_F(ParityTest, LayoutsRanksAndMicroBatchesHaveTheSameGradientsOfEveryParameter) {
  expect_all_same_gradients(data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyHaveWithNextSentences) {
  expect_all_same_gradients(data::Objective::WithNextSentence);
}

}  // namespace
}  // namespace plenum::train
