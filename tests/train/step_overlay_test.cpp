#include "plenum/train/step_overlay.h"

#include <gmock/gmock.h>

#include "plenum/io/file.h"
#include "plenum/schedule/generate/one_forward_one_backward.h"
#include "plenum/schedule/simulate/usual_costs.h"
#include "plenum/trace/overlay.h"

#include "tests/support/temporary_directory.h"

namespace plenum::train {
namespace {

class StepOverlayTest : public testing::Test {
 protected:
  /// A step in which everything took so much longer than usual.
  MeasuredStep step(double factor) const {
    MeasuredStep step{.times = schedule::replay(schedule_, schedule::Dataflow(schedule_),
                                                schedule::UsualCosts(schedule_.problem), 1)
                                   .times,
                      .cycle_step = 0,
                      .is_empty = std::vector<bool>(schedule_.problem.num_micro_batches)};
    for (schedule::RankTimes& rank : step.times) {
      for (schedule::LaneTimes& lane : rank) {
        for (schedule::ActionTime& time : lane) time = {factor * time.start, factor * time.end};
      }
    }
    return step;
  }

  const schedule::Schedule schedule_ = schedule::generate_one_forward_one_backward(
      {.depth = 4, .num_micro_batches = 8, .stage_layers = {3, 3, 3, 2}});
};

TEST_F(StepOverlayTest, PredictsAStepFromThoseBefore) {
  StepOverlay overlay(schedule_, 4);
  overlay.add(2, step(0.9));
  overlay.add(3, step(1.1));
  EXPECT_FALSE(overlay.drawn());
  overlay.add(4, step(1));
  ASSERT_TRUE(overlay.drawn());
  EXPECT_LT(overlay.mean_error(), 0.01);
  const trace::Overlay drawn = trace::lay_over(overlay.drawn()->predicted, overlay.drawn()->measured);
  for (const trace::CategoryError& category : drawn.categories) {
    const bool is_computed =
        category.category == trace::Category::Forward || category.category == trace::Category::Backward;
    EXPECT_TRUE(!is_computed || category.relative_error < 1e-9);
  }
}

TEST_F(StepOverlayTest, CountsTheErrorOfEveryStepFromTheDrawnOneOn) {
  StepOverlay overlay(schedule_, 4);
  overlay.add(3, step(1));
  overlay.add(4, step(1));
  overlay.add(5, step(1.25));
  EXPECT_EQ(overlay.num_compared(), 2U);
  EXPECT_NEAR(overlay.mean_error(), 0.1, 0.01);
}

TEST_F(StepOverlayTest, WritesADrawingOrEveryAction) {
  StepOverlay overlay(schedule_, 4);
  overlay.add(3, step(1));
  overlay.add(4, step(1));
  const test::TemporaryDirectory directory;
  write_overlay(directory / "step.svg", *overlay.drawn(), "a title");
  EXPECT_THAT(io::read_file(directory / "step.svg"), testing::HasSubstr("a title"));
  write_overlay(directory / "step.json", *overlay.drawn(), "a title");
  EXPECT_THAT(io::read_file(directory / "step.json"), testing::HasSubstr("forward, stage 0, micro-batch 0"));
}

}  // namespace
}  // namespace plenum::train
