#include "plenum/pipeline/value_board.h"

#include <thread>

#include <gtest/gtest.h>

namespace plenum::pipeline {
namespace {

using schedule::Lane;
using schedule::ValueRef;

constexpr ValueRef kNow{.index = 0, .age = 0};
constexpr ValueRef kBefore{.index = 0, .age = 1};

TEST(ValueBoard, LetsALaneThroughWhenItsValuesExist) {
  ValueBoard board(2, 0, 0);
  std::jthread reader([&] {
    const ValueRef values[] = {{.index = 0}, {.index = 1}};
    EXPECT_TRUE(board.wait(Lane::Compute, values, 5));
    const ValueRef made[] = {{.index = 0}};
    board.publish(Lane::Compute, made, 6);
  });
  const ValueRef first[] = {{.index = 1}};
  const ValueRef second[] = {{.index = 0}};
  board.publish(Lane::Pipeline, first, 5);
  board.publish(Lane::Pipeline, second, 5);
  EXPECT_TRUE(board.wait(Lane::Pipeline, second, 6));
}

TEST(ValueBoard, HasAllValuesOfStepsBeforeTheFirst) {
  ValueBoard board(1, 3, 10);
  const ValueRef old[] = {{.index = 0, .age = 3}};
  EXPECT_TRUE(board.wait(Lane::Compute, old, 12));
  // What would be made for such a step is not kept.
  board.publish(Lane::Compute, old, 12);
  std::jthread reader([&] { EXPECT_FALSE(board.wait(Lane::Compute, old, 13)); });
  while (!board.missing(Lane::Compute)) std::this_thread::yield();
  EXPECT_EQ(board.missing(Lane::Compute)->age, 3);
  board.close();
}

TEST(ValueBoard, KeepsWhatTheStepBeforeMade) {
  ValueBoard board(1, 0, 0);
  board.publish(Lane::Copy, {&kNow, 1}, 4);
  board.publish(Lane::Copy, {&kNow, 1}, 6);  // by a lane that is a step ahead of the reader
  EXPECT_TRUE(board.wait(Lane::Compute, {&kBefore, 1}, 5));
}

/// Never asked.
class NamedEvent final : public tensor::QueueEvent {
 public:
  bool is_done() const override { return false; }
  double seconds_since(const tensor::QueueEvent&) const override { return 0; }
};

TEST(ValueBoard, GivesTheEventsBehindValuesThatOtherLanesMade) {
  ValueBoard board(4, 0, 0);
  const NamedEvent first;
  const NamedEvent second;
  const ValueRef by_first[] = {{.index = 0}, {.index = 1}};
  const ValueRef by_second[] = {{.index = 2}};
  const ValueRef by_host[] = {{.index = 3}};
  board.publish(Lane::Compute, by_first, 1, &first);
  board.publish(Lane::Pipeline, by_second, 1, &second);
  board.publish(Lane::Copy, by_host, 1);
  const ValueRef all[] = {{.index = 0}, {.index = 1}, {.index = 2}, {.index = 3}};
  std::vector<const tensor::QueueEvent*> events;
  board.collect_events(Lane::DataParallel, all, 1, events);
  EXPECT_EQ(events, (std::vector<const tensor::QueueEvent*>{&first, &second}));
  board.collect_events(Lane::Compute, all, 1, events);
  EXPECT_EQ(events, (std::vector<const tensor::QueueEvent*>{&second}));
  board.collect_events(Lane::DataParallel, {&kBefore, 1}, 2, events);
  EXPECT_EQ(events, (std::vector<const tensor::QueueEvent*>{&first}));
  board.collect_events(Lane::DataParallel, {&kBefore, 1}, 0, events);  // of a step before the first
  EXPECT_TRUE(events.empty());
}

TEST(ValueBoard, HoldsALaneThatIsTwoStepsAhead) {
  ValueBoard board(1, 0, 0);
  board.enlist(Lane::Compute, 0);
  board.enlist(Lane::Copy, 0);
  EXPECT_TRUE(board.begin_step(Lane::Copy, 0));
  EXPECT_TRUE(board.begin_step(Lane::Copy, 1));
  bool has_begun = false;
  std::jthread ahead([&] {
    EXPECT_TRUE(board.begin_step(Lane::Copy, 2));
    EXPECT_TRUE(has_begun);
    EXPECT_TRUE(board.begin_step(Lane::Copy, 3));
  });
  has_begun = true;  // the lane ahead may look only after this
  EXPECT_TRUE(board.begin_step(Lane::Compute, 1));
  board.retire(Lane::Compute);
}

TEST(ValueBoard, LetsEveryoneGoWhenItIsClosed) {
  ValueBoard board(1, 0, 0);
  board.enlist(Lane::Compute, 0);
  board.enlist(Lane::Copy, 0);
  std::jthread waiting([&] { EXPECT_FALSE(board.wait(Lane::Compute, {&kNow, 1}, 0)); });
  std::jthread ahead([&] { EXPECT_FALSE(board.begin_step(Lane::Copy, 2)); });
  board.close();
}

}  // namespace
}  // namespace plenum::pipeline
