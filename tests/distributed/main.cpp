// The tests of ranks that are processes: mpirun -np N test_distributed. Rank 0 prints as always, the others
// only what went wrong.
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include "tests/distributed/mpi_ranks.h"

namespace plenum::comm {
namespace {

class FailurePrinter final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    fmt::print(stderr, "rank {}: {}:{}: {}\n", mpi_ranks().world->rank().value,
               part.file_name() == nullptr ? "" : part.file_name(), part.line_number(), part.message());
  }
};

/// A file that all ranks know, as long as they are on one machine.
std::filesystem::path shared_file(Communicator& all) {
  std::int64_t number = std::chrono::steady_clock::now().time_since_epoch().count();
  all.start_broadcast(elements_of(std::span(&number, 1)), 0, 0).wait();
  return std::filesystem::temp_directory_path() / fmt::format("plenum-abort-{:x}", number);
}

int run_tests(int num_arguments, char** arguments) {
  testing::InitGoogleTest(&num_arguments, arguments);
  MpiRanks& ranks = mpi_ranks();
  const auto tell = [&ranks](Rank failed_rank, std::string_view reason) {
    std::ofstream(ranks.abort_news, std::ios::app) << failed_rank.value << " " << reason << std::endl;
  };
  ranks.world = std::make_unique<mpi::MpiWorld>(mpi::MpiWorldOptions{.on_abort = tell});
  ranks.all = ranks.world->communicator();
  ranks.abort_news = shared_file(*ranks.all);
  if (ranks.world->rank().value != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const int result = RUN_ALL_TESTS();
  ranks.all.reset();
  ranks.world.reset();
  // A launcher takes a process that was aborted for one that failed: here that is what was to happen.
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized == 0 && result == 0) MPI_Finalize();
  std::error_code ignored;  // another rank may have been faster
  std::filesystem::remove(ranks.abort_news, ignored);
  return result;
}

}  // namespace
}  // namespace plenum::comm

int main(int num_arguments, char** arguments) {
  return plenum::comm::run_tests(num_arguments, arguments);
}
