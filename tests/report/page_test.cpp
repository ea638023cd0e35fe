#include "plenum/report/page.h"

#include <regex>

#include <gmock/gmock.h>

#include "plenum/report/html.h"
#include "plenum/report/line_chart.h"
#include "plenum/report/read_run.h"

#include "tests/report/run_directory_fixture.h"

namespace plenum::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr PageOptions kPageOptions = {};

std::string page_of(const std::string& directory) {
  return run_page(read_run(directory), {.written = "today"});
}

/// The elements of a page that have an end are closed in order.
void expect_well_formed(const std::string& page) {
  const std::regex tag("<(/?)([a-z][a-z0-9]*)[^>]*?(/?)>");
  const std::vector<std::string> without_end = {"meta", "link"};
  std::vector<std::string> open;
  std::string text =
      std::regex_replace(page, std::regex("<(script|style)[^>]*>[^<]*(<[^/][^<]*)*</(script|style)>"), "");
  for (std::sregex_iterator it(text.begin(), text.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if (!(*it)[3].str().empty() || std::ranges::find(without_end, name) != without_end.end()) continue;
    if ((*it)[1].str().empty()) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST_F(MadeRuns, ArePagesThatNeedNothingElse) {
  const std::string page = page_of(make("run"));
  EXPECT_THAT(page, AllOf(testing::StartsWith("<!DOCTYPE html>"), HasSubstr("<h1>run</h1>"),
                          Not(HasSubstr("http://")), Not(HasSubstr("https://")), Not(HasSubstr(" src=")),
                          Not(HasSubstr("@import")), Not(HasSubstr("url("))));
  for (const char* section :
       {"curves", "speed", "data", "memory", "ranks", "step", "events", "machine", "configuration"})
    EXPECT_THAT(page, HasSubstr(fmt::format("<section id=\"{}\"", section)));
  EXPECT_THAT(page, AllOf(HasSubstr("51.2 %"), HasSubstr("proof: L2"), HasSubstr("gradients"),
                          HasSubstr("steps in [run]")));
}

TEST_F(MadeRuns, NamesAndNotesCannotBecomeTags) {
  const std::string run = make("a <b>run</b> & \"more\"");
  const std::string events = "a <b>run</b> & \"more\"/events.jsonl";
  directory_.write(
      events,
      begin_line(0) + "{\"step\":1,\"kind\":\"note\",\"text\":\"</script><script>alert(1)</script>\"}\n");
  const std::string page = page_of(run);
  EXPECT_THAT(page,
              AllOf(HasSubstr("&lt;/script&gt;&lt;script&gt;alert(1)"), HasSubstr("A &lt;fast&gt; processor"),
                    Not(HasSubstr("<b>run")), Not(HasSubstr("<script>alert"))));
}

TEST(ScriptJson, CannotEndItsElement) {
  EXPECT_EQ(script_json("{\"name\":\"</script><!--\"}"), "{\"name\":\"\\u003c/script>\\u003c!--\"}");
}

TEST_F(MadeRuns, WhatWasNotRecordedIsNamedAsSuch) {
  const std::string run = make("run", 3);
  directory_.write("run/events.jsonl", "");
  directory_.write("run/evaluations.jsonl", "");
  const std::string page = page_of(run);
  EXPECT_THAT(page, AllOf(HasSubstr("no step was measured"), HasSubstr("share of peak, is not recorded"),
                          HasSubstr("Not recorded."), Not(HasSubstr("nan")), Not(HasSubstr("-0 "))));
}

TEST_F(MadeRuns, WithEventsOfOtherShapesArePagesToo) {
  const std::string run = make("run");
  std::string begin = begin_line(0);
  begin.replace(begin.find("\"lines\":[{\"purpose\":\"parameters\""), 34, "\"lines\":[7,{\"purpose\":[1]");
  for (const std::string& events :
       {begin,
        std::string("{\"kind\":\"begin\",\"memory\":{\"planned_bytes\":1e300,\"lines\":{}},\"time\":1e300,"
                    "\"machine\":[],\"lengths\":7,\"packing\":{\"packs\":-1}}\n"),
        std::string("{\"kind\":\"begin\",\"memory\":{\"planned_bytes\":5}}\n")}) {
    directory_.write("run/events.jsonl", events);
    expect_well_formed(page_of(run));
  }
}

TEST_F(MadeRuns, WithoutAStepArePagesToo) {
  const std::string run = make("run", 0);
  directory_.write("run/evaluations.jsonl", "");
  EXPECT_THAT(page_of(run), HasSubstr("No step has been done yet."));
}

TEST_F(MadeRuns, PagesReloadOnlyWhileTheyAreWritten) {
  const RunRecord run = read_run(make("run"));
  EXPECT_THAT(
      run_page(run, {.written = "", .refresh_seconds = 7}),
      AllOf(HasSubstr("data-refresh=\"7\""), HasSubstr("<meta http-equiv=\"refresh\" content=\"7\">")));
  EXPECT_THAT(run_page(run, {}), AllOf(Not(HasSubstr("data-refresh=\"")), Not(HasSubstr("http-equiv"))));
}

TEST_F(MadeRuns, TheirElementsAreClosed) {
  expect_well_formed(page_of(make("run")));
  expect_well_formed(comparison_page({read_run(make("one")), read_run(make("two"))}, kPageOptions));
}

TEST_F(MadeRuns, ComparedShowWhereTheyDiffer) {
  const std::string one = make("one");
  const std::string two = make("two", 60);
  directory_.write("two/config.toml", "[run]\nsteps = \"100\"\nseed = 4\n[data]\nlayout = \"packed\"\n");
  const std::string page = comparison_page({read_run(one), read_run(two)}, kPageOptions);
  EXPECT_THAT(page, AllOf(HasSubstr("<th scope=\"row\">seed in [run]</th><td>3</td><td>4</td>"),
                          Not(HasSubstr("layout in [data]")),
                          HasSubstr("<th scope=\"row\">steps done</th><td>100</td><td>60</td>")));
  EXPECT_THAT(page,
              HasSubstr("<span class=\"key c0 line\">one</span><span class=\"key c1 line\">two</span>"));
}

TEST_F(MadeRuns, EventsTellOfProcessesThatWereKilled) {
  const std::string run = make("run", 40);
  directory_.write("run/events.jsonl", begin_line(0) + begin_line(20, "resume"));
  const std::string page = page_of(run);
  EXPECT_THAT(page, AllOf(HasSubstr("the process ended without a word: it was killed"),
                          HasSubstr("<td>resume</td>"), HasSubstr("resumed at step 20")));
}

TEST_F(MadeRuns, OfVeryManyStepsArePagesOfBoundedSize) {
  const std::string run = make("run");
  std::string text;
  for (int step = 1; step <= 100'000; ++step)
    text += step_line(step, step == 77'777 ? 99.5 : 5 + 1.0 / step, 100'000);
  directory_.write("run/metrics.jsonl", text);
  const std::string page = page_of(run);
  EXPECT_LT(page.size(), 1'500'000U);
  EXPECT_THAT(page, HasSubstr("greatest 99.5"));
}

TEST(LineChart, IsEmptyWithoutValues) {
  EXPECT_EQ(line_chart_html({.title = "none", .unit = {}, .curves = {}}), "");
}

TEST(LineChart, DrawsFromTheLeftBottomToTheRightTop) {
  Curve curve;
  curve.name = "rising";
  curve.step = {1, 2, 3};
  curve.value = {0, 5, 10};
  const std::string html = line_chart_html({.title = "Rise", .unit = {}, .curves = {curve}});
  std::smatch path;
  ASSERT_TRUE(std::regex_search(
      html, path, std::regex("class=\"curve c0 line\" d=\"M0 ([0-9.]+)L500 [0-9.]+L1000 ([0-9.]+)\"")));
  EXPECT_GT(std::stod(path[1]), 900);
  EXPECT_LT(std::stod(path[2]), 100);
  EXPECT_THAT(html,
              HasSubstr("aria-label=\"Rise. rising: 0 at step 1, 10 at step 3, least 0, greatest 10\""));
}

TEST(LineChart, DrawsTheOnlyPointOfACurve) {
  Curve curve;
  curve.name = "first";
  curve.step = {3};
  curve.value = {0.5};
  const std::string html = line_chart_html({.title = "One", .unit = {}, .curves = {curve}});
  EXPECT_THAT(html,
              AllOf(HasSubstr("class=\"curve c0 dots\" d=\"M0 500h0\""), HasSubstr("\"style\":\"dots\"")));
}

/// The script moves mark i of the drawing to where mark i of its data is.
TEST(LineChart, HasTheMarksThatItDrawsInItsData) {
  Curve curve;
  curve.name = "late";
  curve.step = {100, 200, 300};
  curve.value = {3, 2, 1};
  const std::string html = line_chart_html({.title = "Late",
                                            .unit = {},
                                            .curves = {curve},
                                            .marks = {{5, "early"}, {150, "there"}, {400, "behind"}}});
  EXPECT_THAT(html, AllOf(HasSubstr("<title>there</title>"), HasSubstr("\"marks\":[[150,\"there\"]]")));
}

}  // namespace
}  // namespace plenum::report
