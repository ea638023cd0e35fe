#include <csignal>
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// What tools/check_report says of pages: nothing where they are as they should be.
struct CheckedPages {
  bool has_browser = false;
  std::string faults;
};

CheckedPages check_pages(const std::string& pages, const std::string& directory) {
  const std::string log = directory + "/check-report.log";
  const std::string command = "cd " + directory + " && python3 " PLENUM_SOURCE_DIR "/tools/check_report " +
                              pages + " >" + log + " 2>&1";
  const int status = std::system(command.c_str());
  constexpr int kNoBrowser = 77;
  constexpr int kNoPython = 127;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::ifstream file(log);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (code != 0 && text.empty()) text = "check_report ended with " + std::to_string(code);
  return {code != kNoBrowser && code != kNoPython, code == 0 ? "" : text};
}

TEST_F(TrainingProgram, ReportWritesAPageOfARun) {
  ASSERT_EQ(plenum(train_arguments("run", 30)).exit_code, 0);
  const ProgramResult reported = plenum("report run");
  EXPECT_EQ(reported.exit_code, 0) << reported.errors;
  EXPECT_THAT(reported.output, ContainsRegex("^run/report.html: [0-9.]+ kB\n$"));
  const std::string page = read("run/report.html");
  EXPECT_THAT(page, AllOf(testing::StartsWith("<!DOCTYPE html>"), HasSubstr(">finished</span>"),
                          HasSubstr("Planned memory by purpose"), HasSubstr("predicted above measured"),
                          HasSubstr("Where the time of the predicted step goes"), HasSubstr("<td>begin</td>"),
                          HasSubstr("<td>finish</td>"), Not(HasSubstr("Not recorded"))));
  const CheckedPages checked = check_pages("run/report.html", directory_.path());
  if (!checked.has_browser) GTEST_SKIP() << "the page was not opened: " << checked.faults;
  EXPECT_EQ(checked.faults, "");
}

TEST_F(TrainingProgram, ReportComparesRuns) {
  ASSERT_EQ(plenum(train_arguments("one", 12) + " --quiet").exit_code, 0);
  ASSERT_EQ(plenum(train_arguments("two", 12) + " --quiet --weight-decay 0.2").exit_code, 0);
  const ProgramResult reported = plenum("report one two --output both.html");
  EXPECT_EQ(reported.exit_code, 0) << reported.errors;
  EXPECT_THAT(read("both.html"), AllOf(HasSubstr("2 runs compared"), HasSubstr("weight-decay in [optimizer]"),
                                       Not(HasSubstr("warmup in [optimizer]"))));
  const CheckedPages checked = check_pages("both.html", directory_.path());
  if (!checked.has_browser) GTEST_SKIP() << "the page was not opened: " << checked.faults;
  EXPECT_EQ(checked.faults, "");
}

TEST_F(TrainingProgram, ReportTellsOfARunThatWasKilledAndResumed) {
  const pid_t child = start(train_arguments("run", 400) + " --checkpoint-every 10");
  ASSERT_TRUE(wait_for("run/checkpoints/step-00000010/state.json", child)) << read("err");
  ::kill(child, SIGKILL);
  exit_code_of(child);
  ASSERT_EQ(plenum("report run").exit_code, 0);
  EXPECT_THAT(read("run/report.html"), HasSubstr(">killed</span>"));
  const pid_t second = start(train_arguments("run", 400));
  ASSERT_EQ(exit_code_of(second), 0) << read("err");
  ASSERT_EQ(plenum("report run").exit_code, 0);
  EXPECT_THAT(read("run/report.html"),
              AllOf(HasSubstr(">finished</span>"), HasSubstr("<td>resume</td>"),
                    HasSubstr("the process ended without a word"), HasSubstr("resumed at step ")));
}

TEST_F(TrainingProgram, ReportIsWrittenAgainUntilTheRunEnds) {
  const pid_t child = start(train_arguments("run", 1'000'000));
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child, 2'000)) << read("err");
  ASSERT_EQ(plenum("report run").exit_code, 0);
  EXPECT_THAT(read("run/report.html"),
              AllOf(HasSubstr(">training</span>"), Not(HasSubstr("data-refresh=\""))));
  const pid_t reporter = ::fork();
  if (reporter == 0) exec("report run --live --every 1 --output live.html");
  while (read("live.html").find("data-refresh=\"1\"") == std::string::npos) std::this_thread::yield();
  ::kill(child, SIGTERM);
  exit_code_of(child);
  EXPECT_EQ(exit_code_of(reporter), 0);
  EXPECT_THAT(read("live.html"), AllOf(HasSubstr(">stopped</span>"), Not(HasSubstr("data-refresh=\""))));
}

TEST_F(TrainingProgram, ReportRefusesWhatIsNoRun) {
  expect_error("report", "no run is given");
  expect_error("report data", "data is not the directory of a run");
  expect_error("report none", "none is not the directory of a run");
  expect_error("report data data", "data is given twice");
}

}  // namespace
}  // namespace plenum::cli
