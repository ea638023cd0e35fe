#include "plenum/schedule/fill/ready_pool.h"

#include <gtest/gtest.h>

namespace plenum::schedule {
namespace {

ReadyPool pool_of(std::initializer_list<double> lengths_by_priority) {
  ReadyPool pool;
  std::uint32_t item = 0;
  for (const double seconds : lengths_by_priority) {
    pool.add(seconds, {.priority = item, .item = item});
    ++item;
  }
  return pool;
}

TEST(ReadyPool, PutsItemsOfOneLengthTogetherLongestFirst) {
  const ReadyPool pool = pool_of({1, 5, 1, 3, 5.0000000001});
  ASSERT_EQ(pool.lengths().size(), 3);
  EXPECT_EQ(pool.lengths()[0].items.size(), 2);
  EXPECT_DOUBLE_EQ(pool.lengths()[1].seconds, 3);
  EXPECT_EQ(pool.lengths()[2].items.size(), 2);
}

TEST(ReadyPool, TakesByPriorityAndForgetsEmptyLengths) {
  ReadyPool pool;
  pool.add(2, {.priority = 7, .item = 0});
  pool.add(2, {.priority = 3, .item = 1});
  EXPECT_EQ(pool.take(0).item, 1);
  EXPECT_EQ(pool.take(0).item, 0);
  EXPECT_TRUE(pool.lengths().empty());
}

TEST(ReadyPool, ChoosesTheFirstByPriorityAfterWhichTheGapCanBeFull) {
  const ReadyPool pool = pool_of({4, 3, 6, 1});
  // 4 + 6 fill 10, so the first may run; of 9 only 3 + 6 leave nothing.
  EXPECT_DOUBLE_EQ(pool.lengths()[pool.choose(10, 0)->length].seconds, 4);
  EXPECT_DOUBLE_EQ(pool.lengths()[pool.choose(9, 0)->length].seconds, 3);
}

TEST(ReadyPool, ChoosesWhatLeavesLeastWhereNothingFits) {
  const ReadyPool pool = pool_of({4, 7});
  const auto choice = pool.choose(10, 0);
  EXPECT_DOUBLE_EQ(pool.lengths()[choice->length].seconds, 7);
  EXPECT_DOUBLE_EQ(choice->waste, 3);
  EXPECT_FALSE(pool.choose(3, 0));
}

TEST(ReadyPool, DoesNotCountTheItemThatIsLeftOut) {
  const ReadyPool pool = pool_of({4, 7});
  EXPECT_DOUBLE_EQ(pool.least_waste(7, 0, 0), 3);
  EXPECT_DOUBLE_EQ(pool.least_waste(7, 0, 1), 0);
}

}  // namespace
}  // namespace plenum::schedule
