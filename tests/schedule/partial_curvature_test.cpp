// K-FAC whose statistics cover a part of the micro-batches, as check() sees it.

#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/kfac_schedule.h"

namespace plenum::schedule {
namespace {

/// The first violation of the partial schedule with a change; empty if there is none.
std::string violation_with(std::string_view from, std::string_view to) {
  std::string text(test::kPartialKfacSchedule);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const CheckResult result = check(parse_schedule(text.replace(at, from.size(), to), "test"));
  if (result.violations.empty()) return {};
  return result.violations.front().where + ": " + result.violations.front().why;
}

TEST(PartialCurvature, IsAcceptedOnlyWhereTheSettingSaysSo) {
  EXPECT_EQ(violation_with("curvature partial", "curvature partial"), "");
  EXPECT_EQ(violation_with("curvature partial\n", ""),
            "rank 1, data, step 1, KR0[0]/0~1: needs curvature B of layer 0, factor 0, for micro-batch 1 of "
            "the step before, which nothing makes in that step");
  EXPECT_EQ(test::user_error_of([] { violation_with("preconditioner kfac", "preconditioner shampoo"); }),
            "test:11: only the curvature of kfac can be partial");
}

TEST(PartialCurvature, CoversAMicroBatchOfEveryMapThatIsInverted) {
  EXPECT_EQ(violation_with("KB0.0[0]/0 ", ""),
            "rank 0, compute, step 1, KI0[0]/0#0/2~1: there is no KB of this map: its statistics must cover "
            "a micro-batch");
  EXPECT_EQ(violation_with("KA0.1[0]/1 ", ""),
            "rank 1, compute, step 1, KI0[0]/1~1: there is no KA of this map: its statistics must cover a "
            "micro-batch");
}

TEST(PartialCurvature, CoversTheSameInEveryRefresh) {
  EXPECT_EQ(violation_with("| KB0.0[0]/1~1 F0.0", "| KB0.0[0]/1~1 F0.0 KA0.0[0]/1"),
            "rank 0, data, step 1, KR0[0]/1~1: needs curvature A of layer 0, factor 1, for micro-batch 0 of "
            "the step before, which nothing makes in that step");
}

}  // namespace
}  // namespace plenum::schedule
