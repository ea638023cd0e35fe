// Each of these ends the communication of its process, so each runs in processes of its own.
#include <chrono>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/distributed/mpi_ranks.h"

namespace plenum::comm {
namespace {

using testing::Each;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const Aborted& error) {
    return error.what();
  }
}

/// Waits of every kind that never end, each with a communicator of its own; what each throws.
std::vector<std::string> wait_in_vain() {
  Communicator& all = *mpi_ranks().all;
  std::vector<std::unique_ptr<Communicator>> lanes;
  for (int lane = 0; lane < 5; ++lane) lanes.push_back(all.duplicate());
  std::vector<std::string> errors(lanes.size());
  std::vector<double> values(100'000);
  const Elements elements = elements_of(std::span(values));
  const std::size_t next = (all.index() + 1) % all.size();
  const std::vector<std::function<void(Communicator&)>> waits = {
      [&](Communicator& lane) { lane.start_receive(next, 1, elements).wait(); },
      [&](Communicator& lane) { lane.start_send(next, 1, elements).wait(); },
      [&](Communicator& lane) {
        Completion never = lane.start_receive(next, 9, elements);
        while (!never.test()) std::this_thread::yield();
      },
      [&](Communicator& lane) {
        if (lane.index() == 0) lane.start_all_reduce(elements, 0).wait();
        lane.start_receive(next, 1, elements).wait();
      },
      [&](Communicator& lane) {
        static_cast<void>(lane.group(std::vector<std::size_t>{next, lane.index()}));
      }};
  std::vector<std::jthread> threads;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    threads.emplace_back([&, lane] { errors[lane] = error_of([&] { waits[lane](*lanes[lane]); }); });
  }
  threads.clear();
  return errors;
}

TEST(MpiAbort, FromOutsideEndsEveryWait) {
  const std::jthread outside([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    mpi_ranks().world->abort_here({1}, "the disk is full");
    mpi_ranks().world->abort_here({0}, "too late");
  });
  EXPECT_THAT(wait_in_vain(), Each("rank 1 failed: the disk is full"));
  EXPECT_EQ(error_of([] { mpi_ranks().all->start_barrier(0).wait(); }), "rank 1 failed: the disk is full");
  EXPECT_FALSE(std::filesystem::exists(mpi_ranks().abort_news)) << "news are not sent back";
}

TEST(MpiAbort, OfOneRankReachesTheOthersByWhateverCarriesIt) {
  MpiRanks& ranks = mpi_ranks();
  const std::jthread carrier([&ranks] {
    std::string line;
    while (line.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::ifstream news(ranks.abort_news);
      std::getline(news, line);
    }
    ranks.world->abort_here({line[0] - std::uint32_t{'0'}}, line.substr(2));
  });
  if (ranks.world->rank().value == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks.all->abort_all({1}, "the disk is full");
    ranks.all->abort_all({0}, "too late");
  }
  EXPECT_EQ(error_of([&] { ranks.all->start_barrier(0).wait(); }), "rank 1 failed: the disk is full");
  std::ifstream news(ranks.abort_news);
  std::string line;
  std::getline(news, line);
  EXPECT_EQ(line, "1 the disk is full");
  EXPECT_FALSE(std::getline(news, line)) << "only the first counts: " << line;
}

TEST(MpiAbort, EndsACollectiveThatItsRankLeaves) {
  MpiRanks& ranks = mpi_ranks();
  std::vector<double> values(100'000);
  if (ranks.world->rank().value == 0) {
    { const Completion dropped = ranks.all->start_all_reduce(elements_of(std::span(values)), 0); }
    EXPECT_EQ(error_of([&] { ranks.all->start_barrier(0).wait(); }),
              "rank 0 failed: it left a collective that it had begun");
  } else {
    ranks.world->abort_here({0}, "as a control plane says");
  }
  EXPECT_THROW(mpi::MpiWorld(), base::InternalError) << "there is one already";
}

}  // namespace
}  // namespace plenum::comm
