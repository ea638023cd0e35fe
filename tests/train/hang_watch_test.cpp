#include "plenum/train/hang_watch.h"

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace plenum::train {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class HangWatchTest : public testing::Test {
 protected:
  /// Every second, until so much later than the test began.
  void look_until(HangWatch::Clock::duration time) {
    while (looked_ < begin_ + time) {
      looked_ = std::min<HangWatch::Clock::time_point>(looked_ + 1s, begin_ + time);
      watch_.look(looked_);
    }
  }

  std::vector<std::string> told_;
  HangWatch watch_{60s, [this](const std::string& what) { told_.push_back(what); }};
  const HangWatch::Clock::time_point begin_ = HangWatch::Clock::now();
  HangWatch::Clock::time_point looked_ = begin_;
};

TEST_F(HangWatchTest, TellsOnceWhatDoesNotGetOn) {
  const HangWatch::Activity activity(watch_, "the evaluation hangs: no micro-batch has been done");
  look_until(1s);
  look_until(60s);
  EXPECT_THAT(told_, IsEmpty());
  look_until(61s);
  look_until(200s);
  EXPECT_THAT(told_, ElementsAre("the evaluation hangs: no micro-batch has been done for 60000 ms"));
}

TEST_F(HangWatchTest, IsContentWithWhatIsSlowButGetsOn) {
  HangWatch::Activity activity(watch_, "writing hangs: nothing has been written");
  for (int part = 0; part < 10; ++part) {
    look_until(part * 59s);
    activity.get_on();
  }
  EXPECT_THAT(told_, IsEmpty());
  look_until(600s);
  look_until(660s);
  EXPECT_THAT(told_, ElementsAre("writing hangs: nothing has been written for 60000 ms"));
}

TEST_F(HangWatchTest, ExpectsNothingOfWhatWaitsForOthers) {
  HangWatch::Activity activity(watch_, "writing hangs");
  look_until(30s);
  activity.rest();
  look_until(1h);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(watch_.under_way(), "writing");
  activity.get_on();
  look_until(1h + 62s);
  EXPECT_THAT(told_, ElementsAre("writing hangs for 60000 ms"));
}

TEST_F(HangWatchTest, ExpectsNothingWhereNothingIsUnderWay) {
  { const HangWatch::Activity activity(watch_, "what has ended"); }
  look_until(1s);
  look_until(1h);
  EXPECT_THAT(told_, IsEmpty());
  const HangWatch::Activity next(watch_, "the next hangs");
  look_until(1h + 59s);
  EXPECT_THAT(told_, IsEmpty());
  look_until(1h + 62s);
  EXPECT_THAT(told_, ElementsAre("the next hangs for 60000 ms"));
}

TEST_F(HangWatchTest, DoesNotCountTimeInWhichTheProcessWasStopped) {
  const HangWatch::Activity activity(watch_, "the evaluation hangs");
  look_until(30s);
  looked_ += 1h;  // in which nobody looked
  look_until(1h + 55s);
  EXPECT_THAT(told_, IsEmpty());
  look_until(1h + 65s);
  EXPECT_THAT(told_, ElementsAre("the evaluation hangs for 60000 ms"));
}

TEST(HangWatch, LooksByItselfOnAThread) {
  std::promise<std::string> told;
  HangWatch watch(5ms, [&](const std::string& what) { told.set_value(what); });
  const std::jthread thread([&](const std::stop_token& stop) { watch.watch(stop); });
  const HangWatch::Activity activity(watch, "waiting hangs");
  EXPECT_EQ(told.get_future().get(), "waiting hangs for 5 ms");
}

}  // namespace
}  // namespace plenum::train
