#include "plenum/train/hang_watch.h"

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
  /// So much later than the test began.
  void look_after(HangWatch::Clock::duration time) { watch_.look(begin_ + time); }

  std::vector<std::string> told_;
  HangWatch watch_{60s, [this](const std::string& what) { told_.push_back(what); }};
  const HangWatch::Clock::time_point begin_ = HangWatch::Clock::now();
};

TEST_F(HangWatchTest, TellsOnceWhatDoesNotGetOn) {
  const HangWatch::Activity activity(watch_, "the evaluation hangs: no micro-batch has been done");
  look_after(1s);
  look_after(60s);
  EXPECT_THAT(told_, IsEmpty());
  look_after(61s);
  look_after(200s);
  EXPECT_THAT(told_, ElementsAre("the evaluation hangs: no micro-batch has been done for 60000 ms"));
}

TEST_F(HangWatchTest, IsContentWithWhatIsSlowButGetsOn) {
  HangWatch::Activity activity(watch_, "writing hangs: nothing has been written");
  for (int part = 0; part < 10; ++part) {
    look_after(part * 59s);
    activity.get_on();
  }
  EXPECT_THAT(told_, IsEmpty());
  look_after(600s);
  look_after(660s);
  EXPECT_THAT(told_, ElementsAre("writing hangs: nothing has been written for 60000 ms"));
}

TEST_F(HangWatchTest, ExpectsNothingWhereNothingIsUnderWay) {
  { const HangWatch::Activity activity(watch_, "what has ended"); }
  look_after(1s);
  look_after(1h);
  EXPECT_THAT(told_, IsEmpty());
  const HangWatch::Activity next(watch_, "the next hangs");
  look_after(2h);
  look_after(2h + 59s);
  EXPECT_THAT(told_, IsEmpty());
  look_after(2h + 60s);
  EXPECT_THAT(told_, ElementsAre("the next hangs for 60000 ms"));
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
