// How many messages a collective takes: MPI lets a program put its own function before MPI_Isend.
#include <atomic>
#include <vector>

#include <gtest/gtest.h>
#include <mpi.h>

#include "plenum/base/gather_rounds.h"

#include "tests/distributed/mpi_ranks.h"

namespace {

std::atomic<std::size_t> num_sends = 0;

}  // namespace

extern "C" int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm communicator, MPI_Request* request) {
  ++num_sends;
  return PMPI_Isend(buffer, count, type, to, tag, communicator, request);
}

namespace plenum::comm {
namespace {

/// What this rank sends for a sum of all ranks.
std::size_t sends_for_a_sum_of(std::size_t count) {
  std::vector<double> values(count, 1.0);
  const std::size_t before = num_sends;
  mpi_ranks().all->start_all_reduce(elements_of(std::span(values)), 0).wait();
  return num_sends - before;
}

TEST(MessageCount, OfASmallSumIsThatOfItsRounds) {
  const std::size_t num_messages = base::num_gather_messages(mpi_ranks().all->size());
  for (const std::size_t count : {0, 1, 40, 256}) EXPECT_EQ(sends_for_a_sum_of(count), num_messages);
}

TEST(MessageCount, OfALargerSumAddsItsExchange) {
  const std::size_t num_ranks = mpi_ranks().all->size();
  const std::size_t of_greeting = base::num_gather_messages(num_ranks);
  // A slice to each of the others, and a sum; two members of 8 to 32 kB send everything at once.
  EXPECT_EQ(sends_for_a_sum_of(20'000), of_greeting + 2 * (num_ranks - 1));
  EXPECT_EQ(sends_for_a_sum_of(2'000), of_greeting + (num_ranks == 2 ? 1 : 2 * (num_ranks - 1)));
}

}  // namespace
}  // namespace plenum::comm
