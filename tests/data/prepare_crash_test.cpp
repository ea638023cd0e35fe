#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plenum/data/corpus/dataset.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"

namespace plenum::data {
namespace {

using testing::Contains;
using testing::HasSubstr;

class PrepareCrash : public PrepareTest {
 protected:
  PrepareCrash() {
    // The last document goes on over many blocks, so that runs are also stopped inside one.
    std::string text = random_text(11, 1500);
    text.insert(text.find("\n\n") + 2, "a line that does not end soon " + std::string(40, 'b') + " ");
    for (int i = 0; i < 200; ++i)
      text += "a sentence of the longest document, number " + std::to_string(i) + "\n";
    input_ = directory_.write("in.txt", text);
    PrepareOptions undisturbed = options(input_, "undisturbed");
    undisturbed.holdout = 0.3;
    const auto begin = std::chrono::steady_clock::now();
    prepare_quietly(undisturbed);
    duration_ = std::chrono::steady_clock::now() - begin;
    expected_ = contents_of(undisturbed.output);
  }

  PrepareOptions crash_options() const {
    PrepareOptions given = options(input_);
    given.holdout = 0.3;
    return given;
  }

  void expect_no_dataset() const {
    EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
    test::expect_user_error([&] { Dataset dataset(directory_ / "out"); }, "is no dataset");
  }

  /// Starting takes most of so short a run; this leads beyond it, into the text.
  void wait_for_progress(pid_t child) const {
    const std::string journal = directory_ / "out.partial/journal.json";
    const auto has_position = [&] {
      std::ifstream file(journal);
      const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      return text.find("position") != std::string::npos;
    };
    const auto has_ended = [&] {
      siginfo_t info{};
      return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
             info.si_pid != 0;
    };
    while (!has_position() && !has_ended()) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  std::string input_;
  std::map<std::string, std::string> expected_;
  std::chrono::duration<double> duration_{};  ///< of an undisturbed run: when to kill others
};

TEST_F(PrepareCrash, ARunKilledAnywhereIsContinuedToTheSameBytes) {
  std::mt19937 random(12);
  int killed = 0;
  bool resumed = false;
  for (int round = 0; round < 16; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      base::SilentProgress silent;
      try {
        prepare(crash_options(), silent);
      } catch (...) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    const bool inside_text = round % 2 == 0;
    if (inside_text) wait_for_progress(child);
    std::this_thread::sleep_for(duration_ *
                                (static_cast<double>(random() % 100) / (inside_text ? 2000 : 100)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      ++killed;
      expect_no_dataset();
      if (round % 3 != 0) continue;  // several kills in a row before a run may finish
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0);
    }
    RecordingProgress progress;
    if (!std::filesystem::exists(directory_ / "out")) prepare(crash_options(), progress);
    for (const std::string& note : progress.notes) resumed |= note.starts_with("resuming");
    ASSERT_EQ(contents_of(directory_ / "out"), expected_) << "round " << round;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "out.partial"));
    std::filesystem::remove_all(directory_ / "out");
  }
  EXPECT_GT(killed, 0);
  EXPECT_TRUE(resumed) << "no run was continued";
}

TEST_F(PrepareCrash, AFullDiskIsNamedAndWhatWasDoneIsContinued) {
  const std::uint64_t largest = expected_.at("train.bin").size();
  for (const std::uint64_t limit : {std::uint64_t{2000}, largest / 2, largest - 1}) {
    {
      const test::FileSizeLimit full_disk(limit);
      base::SilentProgress silent;
      try {
        prepare(crash_options(), silent);
        ADD_FAILURE() << "no error at " << limit;
      } catch (const base::UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("cannot write " + directory_.path() + "/out.partial/"));
      }
    }
    expect_no_dataset();
    RecordingProgress progress;
    prepare(crash_options(), progress);
    if (limit > 2000) {
      EXPECT_THAT(progress.notes, Contains(HasSubstr("resuming at")));
    }
    EXPECT_EQ(contents_of(directory_ / "out"), expected_);
    std::filesystem::remove_all(directory_ / "out");
  }
}

/// Throws when a phase has come some way, as a bug or a signal would.
class StoppingProgress final : public base::Progress {
 public:
  explicit StoppingProgress(int steps) : steps_(steps) {}
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {
    if (--steps_ == 0) throw std::runtime_error("stopped");
  }
  void end() override {}
  void note(std::string_view) override {}
  void warn(std::string_view) override {}

 private:
  int steps_;
};

TEST_F(PrepareCrash, ARunStoppedAfterAnyBlockIsContinuedToTheSameBytes) {
  for (int steps = 1; steps < 60; steps += 6) {
    StoppingProgress stopping(steps);
    EXPECT_THROW(prepare(crash_options(), stopping), std::runtime_error);
    expect_no_dataset();
    RecordingProgress progress;
    PrepareOptions given = crash_options();
    given.threads = 1 + steps % 3;
    prepare(given, progress);
    if (steps > 6) {
      EXPECT_THAT(progress.notes, Contains(HasSubstr("resuming at")));
    }
    ASSERT_EQ(contents_of(directory_ / "out"), expected_) << "stopped at step " << steps;
    std::filesystem::remove_all(directory_ / "out");
  }
}

TEST_F(PrepareCrash, ARunStoppedBehindALongDocumentThatIsHeldOutIsContinuedToTheSameBytes) {
  std::string text;
  for (int document = 0; document < 6; ++document) {
    for (int i = 0; i < 100; ++i)
      text += "sentence " + std::to_string(i) + " of document " + std::to_string(document) + "\n";
    text += "\n" + random_text(static_cast<unsigned>(document), 20);
  }
  PrepareOptions given = options(directory_.write("long.txt", text), "long");
  given.holdout = 0.6;
  prepare_quietly(given);
  const std::map<std::string, std::string> undisturbed = contents_of(given.output);
  given.output = directory_ / "out";
  for (int steps = 4; steps < 40; steps += 2) {
    StoppingProgress stopping(steps);
    EXPECT_THROW(prepare(given, stopping), std::runtime_error);
    prepare_quietly(given);
    ASSERT_EQ(contents_of(given.output), undisturbed) << "stopped at step " << steps;
    std::filesystem::remove_all(given.output);
  }
}

TEST_F(PrepareCrash, OtherOptionsOrInputStartClean) {
  StoppingProgress stopping(30);
  EXPECT_THROW(prepare(crash_options(), stopping), std::runtime_error);
  RecordingProgress progress;
  PrepareOptions other = crash_options();
  other.seed = 5;
  prepare(other, progress);
  EXPECT_THAT(progress.notes, Contains(HasSubstr("starting clean: an unfinished run in")));
  EXPECT_NE(contents_of(directory_ / "out"), expected_);
}

}  // namespace
}  // namespace plenum::data
