#include "plenum/train/pending_steps.h"

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>

namespace plenum::train {
namespace {

using testing::ElementsAre;
using Due = PendingSteps::Due;

/// Steps are told apart by their learning rates: 1, 2 and so on.
class PendingStepsTest : public testing::Test {
 protected:
  void ask_for(PendingSteps& steps) { steps.add({.begin = {}, .learning_rate = ++asked_, .work = {}}); }
  bool count(PendingSteps& steps, Due due) {
    return steps.count(due, [&](const PendingStep& step) {
      counted_.push_back(step.learning_rate);
      return step.learning_rate == stops_at_;
    });
  }

  double asked_ = 0;
  double stops_at_ = 0;
  std::vector<double> counted_;
};

TEST_F(PendingStepsTest, AreCountedAtOnceWithoutLag) {
  PendingSteps steps(0);
  for (int i = 0; i < 3; ++i) {
    ask_for(steps);
    EXPECT_FALSE(count(steps, Due::ButLag));
    EXPECT_TRUE(steps.is_empty());
  }
  EXPECT_THAT(counted_, ElementsAre(1, 2, 3));
}

TEST_F(PendingStepsTest, AreCountedOneLateInOrder) {
  PendingSteps steps(1);
  ask_for(steps);
  count(steps, Due::ButLag);
  EXPECT_THAT(counted_, ElementsAre());
  for (int i = 0; i < 3; ++i) {
    ask_for(steps);
    count(steps, Due::ButLag);
    EXPECT_EQ(steps.size(), 1U);
  }
  EXPECT_THAT(counted_, ElementsAre(1, 2, 3));
}

TEST_F(PendingStepsTest, AreAllCountedBeforeAPause) {
  PendingSteps steps(1);
  ask_for(steps);
  count(steps, Due::ButLag);
  ask_for(steps);
  EXPECT_FALSE(count(steps, Due::All));
  EXPECT_TRUE(steps.is_empty());
  EXPECT_THAT(counted_, ElementsAre(1, 2));
  // What comes after the pause lags again.
  ask_for(steps);
  count(steps, Due::ButLag);
  EXPECT_EQ(steps.size(), 1U);
}

TEST_F(PendingStepsTest, AreAllCountedWhenOneSaysThatAStopWasAskedFor) {
  PendingSteps steps(1);
  ask_for(steps);
  count(steps, Due::ButLag);
  ask_for(steps);
  stops_at_ = 1;
  EXPECT_TRUE(count(steps, Due::ButLag));
  EXPECT_TRUE(steps.is_empty());
  EXPECT_THAT(counted_, ElementsAre(1, 2));
}

TEST_F(PendingStepsTest, StayBehindOneThatThrows) {
  PendingSteps steps(1);
  ask_for(steps);
  ask_for(steps);
  const auto fail = [](const PendingStep&) -> bool { throw std::runtime_error("the disk is full"); };
  EXPECT_THROW(steps.count(Due::All, fail), std::runtime_error);
  EXPECT_EQ(steps.size(), 1U);
  count(steps, Due::All);
  EXPECT_THAT(counted_, ElementsAre(2));
}

}  // namespace
}  // namespace plenum::train
