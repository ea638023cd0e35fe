#include "plenum/packing/plan.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::packing {
namespace {

const PackingProblem kProblem{.histogram = {{0, 2, 1, 1}}, .capacity = 4, .depth = 2};

PackingPlan plan_of(std::vector<PackPattern> patterns) {
  return {.capacity = 4, .depth = 2, .patterns = std::move(patterns)};
}

std::string fault_of(std::vector<PackPattern> patterns) {
  return find_fault(plan_of(std::move(patterns)), kProblem).value_or("none");
}

TEST(FindFault, FindsNoneInARightPlan) {
  EXPECT_EQ(fault_of({{{3, 1}, 1}, {{2, 1}, 1}}), "none");
  EXPECT_NO_THROW(check_plan(plan_of({{{3, 1}, 1}, {{2, 1}, 1}}), kProblem));
}

TEST(FindFault, NamesWhatIsWrong) {
  const auto names = [](const std::string& fault, const std::string& word) {
    return fault.find(word) != std::string::npos;
  };
  EXPECT_TRUE(names(fault_of({{{3, 1}, 1}}), "every sequence once"));
  EXPECT_TRUE(names(fault_of({{{3, 1}, 2}, {{2, 1}, 1}}), "more often"));
  EXPECT_TRUE(names(fault_of({{{3, 2}, 1}}), "capacity"));
  EXPECT_TRUE(names(fault_of({{{2, 1, 1}, 1}}), "depth"));
  EXPECT_TRUE(names(fault_of({{{1, 3}, 1}}), "descending"));
  EXPECT_TRUE(names(fault_of({{{4}, 1}}), "does not occur"));
  EXPECT_TRUE(names(fault_of({{{1, 0}, 1}}), "does not occur"));
  EXPECT_TRUE(names(fault_of({{{}, 1}}), "empty"));
  EXPECT_TRUE(names(fault_of({{{3, 1}, 0}}), "empty"));
  EXPECT_THROW(check_plan(plan_of({}), kProblem), base::InternalError);
}

// 2^64 - 1 packs more would bring the count around to where it should be.
TEST(FindFault, IsNotFooledByCountsThatWrapAround) {
  const std::uint64_t most = ~std::uint64_t{0};
  EXPECT_NE(fault_of({{{3, 1}, 1}, {{2, 1}, 1}, {{1}, most}, {{1}, 1}}), "none");
}

}  // namespace
}  // namespace plenum::packing
