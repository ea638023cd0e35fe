#include <span>

#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

/// A way to run the same training.
struct Arrangement {
  const char* name;
  data::Layout layout;
  std::int64_t ranks;
  std::int64_t micro_batch_tokens;
};

// All of these are the same run to rounding, with dropout on.
constexpr Arrangement kArrangements[] = {
    {"unpadded, one micro-batch", data::Layout::Unpadded, 1, 2000},
    {"unpadded", data::Layout::Unpadded, 1, 72},
    {"unpadded, two ranks", data::Layout::Unpadded, 2, 72},
    {"padded", data::Layout::Padded, 1, 96},
    {"padded, two ranks", data::Layout::Padded, 2, 96},
    {"packed", data::Layout::Packed, 1, 96},
    {"packed, two ranks", data::Layout::Packed, 2, 96},
};

class ParityTest : public TrainingTest {
 protected:
  std::vector<StepReport> steps_of(const Arrangement& arrangement, data::Objective objective) {
    RunOptions given = options(std::string("run ") + arrangement.name, 20);
    given.data.directory = objective == data::Objective::WithNextSentence ? pairs_ : dataset_;
    given.data.layout = arrangement.layout;
    given.data.order_choice = data::OrderChoice::Packs;
    given.data.micro_batch_tokens = arrangement.micro_batch_tokens;
    given.run.ranks = arrangement.ranks;
    given.run.threads = arrangement.ranks;
    given.optimizer.learning_rate.peak = 1e-3;
    run(given);
    return observer_.steps;
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

  std::string pairs_ = prepare("pairs", data::Objective::WithNextSentence);
};

TEST_F(ParityTest, LayoutsRanksAndMicroBatchesTrainTheSame) {
  expect_all_equal(data::Objective::MaskedLanguageModel);
}

TEST_F(ParityTest, SoTheyDoWithNextSentences) {
  expect_all_equal(data::Objective::WithNextSentence);
}

}  // namespace
}  // namespace plenum::train
