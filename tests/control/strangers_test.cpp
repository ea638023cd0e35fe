#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "plenum/control/admission.h"
#include "plenum/control/handshake.h"
#include "plenum/control/network_address.h"
#include "plenum/control/rendezvous_file.h"
#include "plenum/io/file.h"

#include "tests/control/planes.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Rank 0 of two, waiting for the other in a thread of its own.
class WaitingRun {
 public:
  explicit WaitingRun(std::string secret = {}) : WaitingRun(std::move(secret), kLongTime) {}
  WaitingRun(std::string secret, std::chrono::milliseconds limit)
      : options_(quick_options(directory_.path())), secret_(std::move(secret)) {
    ControlOptions own = options_;
    own.rendezvous_limit = limit;
    own.handshake_limit = 2 * kLongTime;  // time alone sends nobody away
    thread_ = std::thread([this, own] {
      try {
        ControlPlane plane(launch_of(0, 2, secret_), own, failures_.listener());
        plane.barrier();
        plane.goodbye();
        has_run_ = true;
      } catch (const std::exception& error) {
        error_ = error.what();
      }
    });
  }
  ~WaitingRun() {
    if (thread_.joinable()) thread_.join();
  }
  WaitingRun(const WaitingRun&) = delete;
  WaitingRun& operator=(const WaitingRun&) = delete;

  const std::string& directory() const { return directory_.path(); }
  ControlOptions& options() { return options_; }

  Rendezvous place() const {
    while (true) {
      if (FoundRendezvous found = find_rendezvous(directory_.path()); found.rendezvous)
        return *found.rendezvous;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Descriptor connect() const {
    const Rendezvous here = place();
    return connect_to(here.address, here.port, kLongTime);
  }
  /// Lets rank 1 come, and expects the run to go through.
  void expect_run() {
    FailureLog failures;
    ControlPlane plane(launch_of(1, 2, secret_), options_, failures.listener());
    plane.barrier();
    plane.goodbye();
    thread_.join();
    EXPECT_EQ(error_, "");
    EXPECT_TRUE(has_run_);
    EXPECT_THAT(failures_.all(), IsEmpty());
    EXPECT_THAT(failures.all(), IsEmpty());
  }
  const std::string& wait_for_error() {
    thread_.join();
    return error_;
  }

 private:
  const test::TemporaryDirectory directory_;
  ControlOptions options_;
  const std::string secret_;
  FailureLog failures_;
  bool has_run_ = false;
  std::string error_;
  std::thread thread_;
};

std::string receive_some(const Descriptor& socket, std::size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  std::size_t num_received = 0;
  while (num_received < num_bytes &&
         wait_ready(socket.get(), POLLIN, std::chrono::steady_clock::now() + kLongTime)) {
    const ssize_t count = ::recv(socket.get(), bytes.data() + num_received, num_bytes - num_received, 0);
    if (count <= 0) break;
    num_received += static_cast<std::size_t>(count);
  }
  bytes.resize(num_received);
  return bytes;
}

void send_text(const Descriptor& socket, const std::string& bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Whether the other end closes the connection without another word.
bool is_sent_away(const Descriptor& socket) {
  return receive_some(socket, 1).empty();
}

TEST(Stranger, WhoScansPortsDisturbsNothing) {
  WaitingRun run;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(run.connect().is_open());
  run.expect_run();
}

TEST(Stranger, WhoSendsGarbageIsSentAway) {
  WaitingRun run;
  for (const char byte : {'\0', '\xff', 'G'}) {
    const Descriptor socket = run.connect();
    EXPECT_EQ(receive_some(socket, Hello::kNumBytes).size(), Hello::kNumBytes);
    send_text(socket, std::string(100'000, byte));
    EXPECT_TRUE(is_sent_away(socket));
  }
  run.expect_run();
}

TEST(Stranger, WhoSendsHalfAMessageAndLeavesDisturbsNothing) {
  WaitingRun run;
  for (const std::size_t num_bytes : {std::size_t{1}, Claim::kNumBytes - 1}) {
    const Descriptor socket = run.connect();
    send_text(socket, encode(Claim{}).substr(0, num_bytes));
  }
  run.expect_run();
}

TEST(Stranger, WhoStallsIsSentAwayWhenItsTimeIsOver) {
  const Key key{};
  Listener listener = listen_at("127.0.0.1");
  const std::uint16_t port = listener.port;
  Admission admission(std::move(listener), key,
                      {.num_ranks = 2, .host = "here", .handshake_limit = std::chrono::milliseconds(200)});
  std::string error;
  std::thread door([&] {
    error =
        test::user_error_of([&] { admission.admit_all(Admission::Clock::now() + std::chrono::seconds(3)); });
  });
  const Descriptor socket = connect_to("127.0.0.1", port, kLongTime);
  const auto begin = std::chrono::steady_clock::now();
  std::thread drips([&] {
    // A byte now and then gives no more time.
    while (std::chrono::steady_clock::now() < begin + std::chrono::milliseconds(600)) {
      send_text(socket, "P");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_EQ(receive_some(socket, Hello::kNumBytes).size(), Hello::kNumBytes);
  EXPECT_TRUE(is_sent_away(socket));
  EXPECT_TRUE(door.joinable());
  drips.join();
  door.join();
  EXPECT_THAT(error, HasSubstr("missing rank 1"));
}

TEST(Stranger, WhoFloodsWithConnectionsThatStayKeepsNobodyOut) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit earlier = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  WaitingRun run;
  std::vector<Descriptor> flood;
  const Rendezvous place = run.place();
  for (int i = 0; i < 1000; ++i) flood.push_back(connect_to(place.address, place.port, kLongTime));
  run.expect_run();
  flood.clear();
  ::setrlimit(RLIMIT_NOFILE, &earlier);
}

TEST(Stranger, WhoFloodsWhileRanksComeKeepsNobodyOut) {
  WaitingRun run;
  const Rendezvous place = run.place();
  std::atomic<bool> is_over{false};
  std::thread flooder([&] {
    std::vector<Descriptor> flood(200);
    for (std::size_t i = 0; !is_over; ++i) {
      flood[i % flood.size()].close();
      flood[i % flood.size()] = connect_to(place.address, place.port, std::chrono::milliseconds(100));
    }
  });
  run.expect_run();
  is_over = true;
  flooder.join();
}

TEST(Stranger, WhoClaimsARankWithoutTheSecretIsSentAway) {
  WaitingRun run;
  const Descriptor socket = run.connect();
  const std::optional<Hello> hello = parse_hello(receive_some(socket, Hello::kNumBytes));
  ASSERT_TRUE(hello.has_value());
  Claim claim{.rank = {1}, .num_ranks = 2, .host = "evil"};
  sign(run_key("a guess at the secret", run.place().run), *hello, claim);
  send_text(socket, encode(claim));
  EXPECT_TRUE(is_sent_away(socket));
  run.expect_run();
}

TEST(Stranger, WhoRepeatsWhatARankSaidIsSentAway) {
  WaitingRun run;
  const Rendezvous place = run.place();
  const Key key = run_key(place.secret, place.run);
  const Descriptor first = run.connect();
  const std::optional<Hello> hello = parse_hello(receive_some(first, Hello::kNumBytes));
  Claim claim{.rank = {1}, .num_ranks = 2, .host = "here"};
  sign(key, *hello, claim);
  {
    // Its own nonce is another, so what was right for the first connection is wrong for this one.
    const Descriptor second = run.connect();
    receive_some(second, Hello::kNumBytes);
    send_text(second, encode(claim));
    EXPECT_TRUE(is_sent_away(second));
  }
  run.expect_run();
}

TEST(Rank, ThatComesTwiceIsRefusedAndTheFirstStays) {
  const test::TemporaryDirectory directory;
  ControlOptions options = quick_options(directory.path());
  std::vector<std::thread> threads;
  std::atomic<int> num_refused{0};
  std::atomic<int> num_ran{0};
  const auto take_part = [&](std::uint32_t rank) {
    try {
      FailureLog failures;
      ControlPlane plane(launch_of(rank, 3), options, failures.listener());
      plane.barrier();
      plane.goodbye();
      ++num_ran;
    } catch (const base::UserError& error) {
      EXPECT_STREQ(error.what(), "another process is rank 1 of this run already: start each rank once");
      ++num_refused;
    }
  };
  for (const std::uint32_t rank : {0U, 1U, 1U}) threads.emplace_back(take_part, rank);
  while (num_refused == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  threads.emplace_back(take_part, 2U);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_refused, 1);
  EXPECT_EQ(num_ran, 3);
}

TEST(Rank, OfAnotherNumberOfRanksIsRefused) {
  WaitingRun run;
  test::expect_user_error([&] { ControlPlane(launch_of(1, 4), run.options(), [](const RankFailure&) {}); },
                          "was started as one of 2 ranks, this process as rank 1 of 4");
  run.expect_run();
}

TEST(Rank, WithAnotherSecretIsNotLetInAndSaysSo) {
  WaitingRun run("the right secret of this run");
  run.place();
  ControlOptions options = run.options();
  options.rendezvous_limit = std::chrono::milliseconds(300);
  test::expect_user_error(
      [&] { ControlPlane(launch_of(1, 2, "another secret of a run"), options, [](const RankFailure&) {}); },
      "does not know the secret of this run");
  options.rendezvous_limit = std::chrono::milliseconds(100);
  test::expect_user_error([&] { ControlPlane(launch_of(1, 2), options, [](const RankFailure&) {}); },
                          "has no secret: give this process the PLENUM_SECRET that rank 0 has");
  run.expect_run();
}

TEST(Secret, OfTheEnvironmentIsNotWrittenToTheFile) {
  WaitingRun run("the secret of this run");
  run.place();
  const std::string text = io::read_file(rendezvous_path(run.directory()));
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  run.expect_run();
}

TEST(Rank, SaysWhatItFoundWhenRank0DoesNotCome) {
  const test::TemporaryDirectory directory;
  ControlOptions options = quick_options(directory.path());
  options.rendezvous_limit = std::chrono::milliseconds(100);
  const auto come = [&] { ControlPlane(launch_of(1, 2), options, [](const RankFailure&) {}); };
  test::expect_user_error(come, "the run directory must be on a file system that all nodes share");
  directory.write("control.json", "{\"format\": \"plenum-control\"");
  test::expect_user_error(come, "control.json is damaged");
  std::uint16_t port = 0;
  {
    const Listener listener = listen_at("127.0.0.1");
    port = listener.port;
  }
  const Rendezvous stale{.address = "127.0.0.1", .port = port, .run = {}, .secret = make_secret()};
  directory.write("control.json", rendezvous_text(stale));
  test::expect_user_error(come, "but nobody answers there: Connection refused");
}

TEST(Rank, PassesOverTheFileOfAnEarlierRun) {
  const test::TemporaryDirectory directory;
  const ControlOptions options = quick_options(directory.path());
  // At the port that the file names there is somebody else by now: another run, or another program.
  WaitingRun other;
  Rendezvous stale = other.place();
  stale.secret = make_secret();
  directory.write("control.json", rendezvous_text(stale));
  FailureLog failures;
  std::thread spoke([&] {
    ControlPlane plane(launch_of(1, 2), options, failures.listener());
    plane.barrier();
    plane.goodbye();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ControlPlane plane(launch_of(0, 2), options, failures.listener());
  plane.barrier();
  plane.goodbye();
  spoke.join();
  EXPECT_THAT(failures.all(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  other.expect_run();
}

TEST(Rank, DoesNotBelieveASecretThatAnotherUserWrote) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to give a file to another user";
  const test::TemporaryDirectory directory;
  const Rendezvous place{.address = "127.0.0.1", .port = 1, .run = {}, .secret = make_secret()};
  const std::string path = directory.write("control.json", rendezvous_text(place));
  EXPECT_TRUE(find_rendezvous(directory.path()).rendezvous.has_value());
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(find_rendezvous(directory.path()).rendezvous.has_value());
  EXPECT_THAT(find_rendezvous(directory.path()).problem, HasSubstr("belongs to another user"));
}

TEST(Rank0, NamesTheRanksThatDidNotCome) {
  const test::TemporaryDirectory directory;
  ControlOptions options = quick_options(directory.path());
  options.rendezvous_limit = std::chrono::milliseconds(1500);
  std::string error_of_1;
  std::thread one([&] {
    error_of_1 =
        test::user_error_of([&] { ControlPlane(launch_of(1, 4), options, [](const RankFailure&) {}); });
  });
  const std::string error =
      test::user_error_of([&] { ControlPlane(launch_of(0, 4), options, [](const RankFailure&) {}); });
  one.join();
  EXPECT_THAT(error, HasSubstr("2 of 4 ranks did not come"));
  EXPECT_THAT(error, HasSubstr("missing ranks 2, 3"));
  EXPECT_EQ(error_of_1, error) << "the ranks that came are told";
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Runs, OnOneMachineWithOneSecretDoNotMix) {
  const std::string secret = "one secret for two runs";
  WaitingRun one(secret);
  WaitingRun other(secret);
  {
    // Even a file that leads to the other run does not.
    Rendezvous wrong = other.place();
    wrong.run = one.place().run;
    const test::TemporaryDirectory directory;
    directory.write("control.json", rendezvous_text(wrong));
    ControlOptions options = quick_options(directory.path());
    options.rendezvous_limit = std::chrono::milliseconds(200);
    test::expect_user_error(
        [&] { ControlPlane(launch_of(1, 2, secret), options, [](const RankFailure&) {}); },
        "does not know the secret of this run");
  }
  std::thread first([&] { one.expect_run(); });
  other.expect_run();
  first.join();
}

}  // namespace
}  // namespace plenum::control
