#include "plenum/report/step_times.h"

#include <gmock/gmock.h>

#include "plenum/report/step_chart.h"

namespace plenum::report {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

/// Two ranks; the second has a lane for messages.
json step_file() {
  return json::parse(
      R"({"format":"plenum-step","version":1,"step":8,"schedule":"1f1b <2>","prediction":"machine",
    "ranks":2,"waited_seconds":0.004,
    "tracks":[{"rank":0,"lane":"compute"},{"rank":1,"lane":"compute"},{"rank":1,"lane":"out"}],
    "predicted":{"step_seconds":0.2,"length_seconds":0.2,"spans":[[0,0.0,0.1,"forward","forward 0",0],
      [1,0.1,0.2,"backward","backward 0",0],[2,0.1,0.12,"message","send",-1]]},
    "measured":{"step_seconds":0.25,"length_seconds":0.25,"spans":[[0,0.0,0.15,"forward","forward 0",0],
      [1,0.15,0.25,"backward","backward 0",0],[2,0.15,0.16,"message","send",-1]]},
    "breakdown":[{"arithmetic":0.1,"bubbles":0.1},{"arithmetic":0.05,"bubbles":0.15}]})");
}

TEST(StepTimes, AreReadAsTheyWereWritten) {
  const StepTimes times = parse_step_times(step_file()).value();
  EXPECT_EQ(times.step, 8U);
  EXPECT_EQ(times.tracks.size(), 3U);
  ASSERT_EQ(times.measured.spans.size(), 3U);
  EXPECT_EQ(times.measured.spans[1].category, trace::Category::Backward);
  EXPECT_EQ(times.measured.spans[1].end, 0.25);
  ASSERT_EQ(times.breakdown.size(), 2U);
  EXPECT_EQ(times.breakdown[0].first, "arithmetic");
  EXPECT_NEAR(times.breakdown[0].second, 0.075, 1e-12);
}

TEST(StepTimes, AreNoneOfWhatIsNoSuchFile) {
  EXPECT_FALSE(parse_step_times(json::parse("nothing", nullptr, false)));
  EXPECT_FALSE(parse_step_times(json::object()));
  const json whole = step_file();
  for (const auto& [key, value] : whole.items()) {
    if (key == "format" || key == "version") continue;
    json file = whole;
    file[key] = "something else";
    if (!value.is_string()) {
      EXPECT_FALSE(parse_step_times(file)) << key;
    }
  }
}

TEST(StepTimes, AreDrawnForEachRankPredictedAboveMeasured) {
  const std::string html = step_timeline_html(parse_step_times(step_file()).value());
  EXPECT_THAT(html, AllOf(HasSubstr("1f1b &lt;2&gt;"), HasSubstr("data-length=\"250\" data-unit=\"ms\""),
                          HasSubstr("forward 0: forward, micro-batch 0, 150.0 ms from 0 ms")));
  EXPECT_LT(html.find("row predicted"), html.find("row measured"));
}

TEST(StepTimes, TellHowLongEachRankComputed) {
  const std::string html = rank_shares_html(parse_step_times(step_file()).value());
  EXPECT_THAT(html, AllOf(HasSubstr("60.0 %"), HasSubstr("40.0 %"), HasSubstr("4.000 ms went by waiting")));
}

TEST(StepTimes, TellHowFarThePredictionIsOff) {
  const std::string html = prediction_table_html(parse_step_times(step_file()).value());
  EXPECT_THAT(html, AllOf(HasSubstr("+50.0 %"), HasSubstr("+25.0 %")));
}

}  // namespace
}  // namespace plenum::report
