// plenum train as several processes start it, of which one is killed in a chosen phase of a step:
//   dying_train PHASE RANK COUNT --run RUN --data DATA ...
// RANK kills itself when it begins PHASE for the COUNTth time, counted from when the others know what it
// does. Phases without communication are hit by the clock, at a share of the last step's time.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/cli/environment.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/train_processes.h"
#include "plenum/control/rank_failure.h"
#include "plenum/train/trainer.h"

#include "tests/comm/hooked_communicator.h"

namespace plenum::cli {
namespace {

using comm::HookedCommunicator;
using tensor::DType;
using Clock = std::chrono::steady_clock;
using Kind = HookedCommunicator::Kind;

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();
}

/// Kills this process in its phase.
class Death {
 public:
  Death(std::string_view phase, int count) : phase_(phase), count_(count) {}

  /// What is said reaches the others with the next heartbeat.
  void said(std::string_view text) {
    constexpr std::chrono::milliseconds kHeartbeat{1200};
    if (text.empty() || is_armed_) return;
    if (first_said_ == Clock::time_point{}) first_said_ = Clock::now();
    is_armed_ = Clock::now() - first_said_ > kHeartbeat;
  }

  void begun(Kind kind, comm::ConstElements elements) {
    const std::string_view begins = phase_of(kind, elements);
    if (begins == "agree") note_step();
    if (!is_armed_) return;
    if (begins == phase_) {
      if (++num_begun_ == count_) die();
    } else if (const auto share = kShares.find(phase_); begins == "agree" && share != kShares.end()) {
      if (++num_begun_ == count_) die_after(share->second);
    }
  }

 private:
  /// Of phases that follow the agreement, of a step's time: the update is its first part, the next forward
  /// follows, and backward is the last and longest.
  static inline const std::map<std::string, double, std::less<>> kShares = {
      {"update", 0.01}, {"forward", 0.2}, {"backward", 0.6}};

  /// What is summed and gathered where nothing is divided by --tp.
  static std::string_view phase_of(Kind kind, comm::ConstElements elements) {
    if (kind == Kind::ReduceScatter) return "reduce";
    if (kind == Kind::AllReduce && elements.dtype == DType::Float32) return "reduce";
    if (kind == Kind::AllReduce && elements.dtype == DType::Float64)
      return elements.count() == 1 ? "evaluation" : "agree";
    if (kind == Kind::AllGather && elements.dtype == DType::Float32) return "gather";
    if (kind == Kind::Send) return "send";
    if (kind == Kind::AllGather && elements.dtype == DType::Int64) return "checkpoint";
    return "";
  }

  void note_step() {
    const Clock::time_point now = Clock::now();
    step_time_ = now - last_;
    last_ = now;
  }

  void die_after(double share) {
    std::thread([delay = step_time_ * share] {
      std::this_thread::sleep_for(delay);
      die();
    }).detach();
  }

  const std::string phase_;
  const int count_;
  Clock::time_point first_said_;  ///< by who says it alone
  std::atomic<bool> is_armed_ = false;
  std::atomic<int> num_begun_ = 0;
  Clock::time_point last_ = Clock::now();  ///< by the lane that agrees alone, as the next
  Clock::duration step_time_{};
};

/// "--name value", again and again.
train::RunOptions parse_options(int argc, char** argv) {
  train::RunOptions options;
  for (int i = 0; i + 1 < argc; i += 2) {
    bool is_known = false;
    for (const base::OptionTable& table : options.tables()) {
      const base::Option* option = table.find(std::string_view(argv[i]).substr(2));
      if (option == nullptr) continue;
      option->set({argv[i + 1]});
      is_known = true;
    }
    base::require(is_known, "there is no option {}", argv[i]);
  }
  return options;
}

class SilentObserver final : public train::TrainingObserver {
 public:
  void on_begin(const train::RunSummary&) override {}
  void on_step(const train::StepReport&) override {}
  void on_evaluation(std::uint64_t, const train::Evaluation&) override {}
  void on_checkpoint(std::uint64_t, const std::string&) override {}
  void on_choice(std::string_view) override {}
  void on_table(std::string_view) override {}
  void on_note(std::string_view) override {}
  void on_hang(std::string_view) override {}
};

int run(int argc, char** argv) {
  std::signal(SIGTERM, SIG_IGN);  // which mpirun sends the others; they have something to say first
  const control::Launch launch = launch_of_environment();
  Death death(argv[1], std::stoi(argv[3]));
  const bool dies = launch.rank.index() == std::stoul(argv[2]);
  train::RunOptions options = parse_options(argc - 4, argv + 4);
  TrainProcesses processes(launch);
  processes.settle(options.run);
  std::unique_ptr<HookedCommunicator> ranks;
  const auto connect = [&](const train::RunOptions& settled, const train::TrainingData& data) {
    const train::Processes connected = processes.connect(settled, data);
    ranks = std::make_unique<HookedCommunicator>(connected.communicator(),
                                                 [&](Kind kind, comm::ConstElements elements) {
                                                   if (dies) death.begun(kind, elements);
                                                 });
    return train::Processes(*ranks, [&, say = connected.say()](std::string_view text) {
      say(text);
      death.said(text);
    });
  };
  SilentObserver observer;
  try {
    train::train(options, observer, {}, connect);
    processes.end();
    return 0;
  } catch (const std::exception& error) {
    const control::RankFailure failure = processes.fail(error.what(), true);
    fmt::print(stderr, "rank {}: {}\n", launch.rank.index(), control::failure_text(failure));
    return kRankFailedCode;
  }
}

}  // namespace
}  // namespace plenum::cli

int main(int argc, char** argv) {
  return plenum::cli::run(argc, argv);
}
