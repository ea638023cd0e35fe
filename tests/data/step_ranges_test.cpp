#include "plenum/data/batches/step_ranges.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

TEST(StepRanges, CutEveryEpochWithoutGapsOrTinySteps) {
  for (std::uint64_t items = 1; items < 120; ++items) {
    for (std::uint64_t per_step = 1; per_step < 130; ++per_step) {
      const StepRanges steps(items, per_step);
      ASSERT_EQ(steps.num_steps(), (items + per_step - 1) / per_step);
      std::uint64_t position = 0;
      for (std::uint64_t step = 0; step < steps.num_steps(); ++step) {
        const PositionRange range = steps.range(step);
        ASSERT_EQ(range.begin, position);
        ASSERT_LE(range.size(), per_step);
        if (step + 2 < steps.num_steps()) {
          ASSERT_EQ(range.size(), per_step);
        }
        if (steps.num_steps() > 1) {
          ASSERT_GE(2 * range.size(), per_step);
        }
        position = range.end;
      }
      ASSERT_EQ(position, items);
    }
  }
}

TEST(StepRanges, RefuseStepsThatThereAreNot) {
  EXPECT_THROW(StepRanges(0, 1), base::InternalError);
  EXPECT_THROW(StepRanges(1, 0), base::InternalError);
  EXPECT_THROW(StepRanges(4, 2).range(2), base::InternalError);
}

}  // namespace
}  // namespace plenum::data
