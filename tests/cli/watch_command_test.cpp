#include <array>
#include <csignal>

#include <gmock/gmock.h>
#include <pty.h>

#include "plenum/io/file.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST_F(TrainingProgram, WatchShowsWhereAFinishedRunStands) {
  ASSERT_EQ(plenum(train_arguments("run", 12) + " --quiet").exit_code, 0);
  const ProgramResult watched = plenum("watch run");  // no terminal: once
  EXPECT_EQ(watched.exit_code, 0) << watched.errors;
  EXPECT_THAT(watched.output,
              AllOf(ContainsRegex("^run: step 12/12  100 %  loss [0-9.]+\n"), HasSubstr("┤"),
                    ContainsRegex("speed: [0-9,]+ tokens/s; learning rate .*; epoch [0-9.]+; .* of training"),
                    ContainsRegex("evaluation: held-out loss [0-9.]+ at step 12, accuracy [0-9.]+ %"),
                    HasSubstr("checkpoint: run/checkpoints/step-00000012\n"), HasSubstr("state: finished\n"),
                    Not(HasSubstr(" left"))));
}

TEST_F(TrainingProgram, WatchFollowsARunWithoutDisturbingIt) {
  const pid_t child = start(train_arguments("run", 1'000'000));
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child, 2'000)) << read("err");
  const ProgramResult watched = plenum("watch run --once");
  EXPECT_EQ(watched.exit_code, 0) << watched.errors;
  EXPECT_THAT(watched.output,
              AllOf(ContainsRegex("^run: step [0-9,]+/1,000,000  0 %  loss [0-9.]+  .* left\n"),
                    HasSubstr("state: training\n")));
  ::kill(child, SIGTERM);
  exit_code_of(child);
  EXPECT_THAT(plenum("watch run --once").output,
              AllOf(HasSubstr("state: no process of this machine trains it; last step "),
                    HasSubstr("plenum train --run run resumes\n")));
}

TEST_F(TrainingProgram, WatchFollowsARunOnATerminalUntilItEnds) {
  const pid_t child = start(train_arguments("run", 400));
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child)) << read("err");
  int terminal = -1;
  const pid_t watch = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (watch == 0) exec("watch run");
  std::string shown;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; (count = ::read(terminal, bytes.data(), bytes.size())) > 0;)
    shown.append(bytes.data(), static_cast<std::size_t>(count));
  EXPECT_EQ(exit_code_of(watch), 0);
  ::close(terminal);
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_THAT(shown, AllOf(HasSubstr("state: training"), HasSubstr("\x1b[J"), HasSubstr("step 400/400"),
                           testing::EndsWith("state: finished\r\n")));
}

TEST_F(TrainingProgram, WatchRefusesWhatIsNoRun) {
  expect_error("watch", "no run is given");
  expect_error("watch data", "data is not the directory of a run");
  expect_error("watch none", "none is not the directory of a run");
}

}  // namespace
}  // namespace plenum::cli
