#include "plenum/trace/perfetto.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/trace/sample_timeline.h"

namespace plenum::trace {
namespace {

using Json = nlohmann::json;

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

std::string trace_json(const Timeline& timeline) {
  std::string json;
  write_trace(timeline, [&json](std::string_view piece) { json += piece; });
  return json;
}

TEST(Perfetto, HasACompleteEventForEverySpan) {
  const Timeline timeline = two_ranks();
  const Json trace = Json::parse(trace_json(timeline));
  const std::vector<Json> events = events_of(trace, "X");
  ASSERT_EQ(events.size(), timeline.spans.size());
  EXPECT_EQ(events[1]["name"], "F0.1");
  EXPECT_EQ(events[1]["cat"], "forward");
  EXPECT_EQ(events[1]["pid"], 0);
  EXPECT_EQ(events[1]["tid"], 0);
  EXPECT_DOUBLE_EQ(events[1]["ts"], 2000);
  EXPECT_DOUBLE_EQ(events[1]["dur"], 2000);
  EXPECT_EQ(events[1]["args"], (Json{{"stage", 0}, {"micro_batch", 1}, {"step", 0}}));
  EXPECT_EQ(events[5]["args"], (Json{{"stage", 1}, {"step", 0}}));
  EXPECT_EQ(trace["otherData"]["title"], "two ranks");
}

TEST(Perfetto, NamesProcessesAndThreads) {
  const Json trace = Json::parse(trace_json(two_ranks()));
  std::map<std::string, std::vector<std::string>> names;
  for (const Json& event : events_of(trace, "M")) {
    if (event["args"].contains("name")) names[event["name"]].push_back(event["args"]["name"]);
  }
  EXPECT_EQ(names["process_name"], (std::vector<std::string>{"rank 0", "rank 1"}));
  EXPECT_EQ(names["thread_name"], (std::vector<std::string>{"compute", "pipe", "compute", "pipe"}));
}

TEST(Perfetto, BindsBothEndsOfEveryFlowToTheirSpans) {
  const Timeline timeline = two_ranks();
  const Json trace = Json::parse(trace_json(timeline));
  const std::vector<Json> spans = events_of(trace, "X");
  const std::vector<Json> starts = events_of(trace, "s");
  const std::vector<Json> ends = events_of(trace, "f");
  ASSERT_EQ(starts.size(), timeline.flows.size());
  ASSERT_EQ(ends.size(), timeline.flows.size());
  const auto expect_inside = [](const Json& event, const Json& span) {
    EXPECT_EQ(event["pid"], span["pid"]);
    EXPECT_EQ(event["tid"], span["tid"]);
    EXPECT_GE(event["ts"].get<double>(), span["ts"].get<double>());
    EXPECT_LT(event["ts"].get<double>(), span["ts"].get<double>() + span["dur"].get<double>());
  };
  for (std::size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
    EXPECT_EQ(ends[i]["bp"], "e");
    EXPECT_EQ(starts[i]["name"], ends[i]["name"]);
    EXPECT_EQ(starts[i]["cat"], ends[i]["cat"]);
    EXPECT_LE(starts[i]["ts"].get<double>(), ends[i]["ts"].get<double>());
    expect_inside(starts[i], spans[timeline.flows[i].from]);
    expect_inside(ends[i], spans[timeline.flows[i].to]);
  }
}

TEST(Perfetto, LeavesNoDoubtWhichSpanAnArrowBindsTo) {
  // Messages that take no time, all at once: rank 0 sends three, then rank 1 has them.
  SampleTimeline sample;
  sample.track(0, "pipe out");
  for (const char* name : {"SF0.0", "SF0.1", "SF0.2"}) sample.span(1e-3, 1e-3, name, Category::Message);
  sample.track(1, "pipe in");
  for (const char* name : {"RF1.0", "RF1.1", "RF1.2"}) sample.span(1e-3, 1e-3, name, Category::Message);
  sample.span(1e-3, 2e-3, "long", Category::Other);
  const Json trace = Json::parse(trace_json(sample.flow(0, 3).flow(1, 4).flow(2, 5).build("", 0, 2e-3, {0})));
  const std::vector<Json> spans = events_of(trace, "X");
  const auto nanoseconds = [](const Json& microseconds) {
    return std::llround(microseconds.get<double>() * 1e3);
  };
  for (const std::string phase : {"s", "f"}) {
    for (const Json& end : events_of(trace, phase)) {
      std::vector<std::string> around;
      for (const Json& span : spans) {
        const long long begin = nanoseconds(span["ts"]);
        const bool is_around = span["tid"] == end["tid"] && begin <= nanoseconds(end["ts"]) &&
                               nanoseconds(end["ts"]) < begin + nanoseconds(span["dur"]);
        if (is_around) around.push_back(span["name"]);
      }
      const std::string number = std::to_string(end["id"].get<int>());
      EXPECT_EQ(around, std::vector<std::string>{(phase == "s" ? "SF0." : "RF1.") + number});
    }
  }
}

TEST(Perfetto, DrawsSpansThatTakeNoTimeOneBehindTheOther) {
  SampleTimeline sample;
  sample.track(0, "compute");
  for (const char* name : {"NS0", "U0", "U1"}) sample.span(1e-3, 1e-3, name, Category::Update);
  const std::vector<Json> events = events_of(Json::parse(trace_json(sample.build("", 0, 1, {0}))), "X");
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_GT(events[i]["dur"].get<double>(), 0);
    if (i == 0) continue;
    EXPECT_GE(std::llround(1e3 * events[i]["ts"].get<double>()),
              std::llround(1e3 * (events[i - 1]["ts"].get<double>() + events[i - 1]["dur"].get<double>())));
  }
}

TEST(Perfetto, LeavesNoOverlapByRounding) {
  SampleTimeline sample;
  sample.track(0, "compute");
  for (int i = 0; i < 1000; ++i) sample.span(i * 1e-3 / 3, (i + 1) * 1e-3 / 3, "F", Category::Forward);
  const std::vector<Json> events = events_of(Json::parse(trace_json(sample.build("", 0, 1, {0}))), "X");
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_NEAR(events[i - 1]["ts"].get<double>() + events[i - 1]["dur"].get<double>(), events[i]["ts"],
                1e-7);
  }
}

TEST(Perfetto, BeginsWithTheEarliestSpan) {
  const Timeline timeline = SampleTimeline()
                                .track(0, "compute")
                                .span(2, 3, "F", Category::Forward)
                                .track(0, "copy")
                                .span(1.5, 1.75, "X", Category::Collective)
                                .build("", 2, 3, {2});
  const std::vector<Json> events = events_of(Json::parse(trace_json(timeline)), "X");
  EXPECT_DOUBLE_EQ(events[0]["ts"], 500000);
  EXPECT_DOUBLE_EQ(events[1]["ts"], 0);
}

TEST(Perfetto, EscapesText) {
  Timeline timeline = two_ranks("a \"b\" \\ c\n\xff");
  timeline.labels[0] = "q\"";
  timeline.tracks[0].name = "l\\";
  const Json trace = Json::parse(trace_json(timeline));
  EXPECT_EQ(trace["otherData"]["title"], "a \"b\" \\ c\uFFFD\uFFFD");
  EXPECT_EQ(events_of(trace, "X")[0]["name"], "q\"");
}

TEST(Perfetto, WritesInPieces) {
  SampleTimeline sample;
  sample.track(0, "compute");
  for (int i = 0; i < 5000; ++i) sample.span(i, i + 1, "F", Category::Forward, i);
  const Timeline timeline = sample.build("", 0, 5000, {0});
  std::string joined;
  std::size_t num_pieces = 0;
  std::size_t longest = 0;
  write_trace(timeline, [&](std::string_view piece) {
    joined += piece;
    ++num_pieces;
    longest = std::max(longest, piece.size());
  });
  EXPECT_EQ(events_of(Json::parse(joined), "X").size(), 5000u);
  EXPECT_GT(num_pieces, 5u);
  EXPECT_LT(longest, 100000u);
}

TEST(Perfetto, CountsMicroBatchesBetweenForwardAndBackward) {
  const Timeline timeline = SampleTimeline()
                                .track(0, "compute")
                                .span(0, 1, "F0", Category::Forward, 0)
                                .span(1, 2, "F1", Category::Forward, 1)
                                .span(2, 3, "BI0", Category::InputGradient, 0)
                                .span(3, 4, "B1", Category::Backward, 1)
                                .span(5, 6, "BW0", Category::WeightGradient, 0)
                                .track(1, "compute")
                                .span(0, 1, "F0", Category::Forward, 0)
                                .build("", 0, 6, {0});
  std::vector<std::pair<double, int>> counts;
  for (const Json& event : events_of(Json::parse(trace_json(timeline)), "C")) {
    EXPECT_EQ(event["pid"], 0) << "a forward alone keeps nothing that is counted";
    counts.emplace_back(event["ts"].get<double>() / 1e6, event["args"]["held"]);
  }
  EXPECT_EQ(counts, (std::vector<std::pair<double, int>>{{0, 1}, {1, 2}, {4, 1}, {6, 0}}));
}

TEST(Perfetto, SaysInOtherWordsWhatASpanIs) {
  Timeline timeline = two_ranks();
  timeline.explanations.assign(timeline.labels.size(), "\"forward\"");
  EXPECT_EQ(events_of(Json::parse(trace_json(timeline)), "X")[1]["args"]["action"], "\"forward\"");
}

TEST(Perfetto, TakesAnEmptyTimeline) {
  EXPECT_TRUE(Json::parse(trace_json({}))["traceEvents"].empty());
}

}  // namespace
}  // namespace plenum::trace
