// Of a world whose reductions are the library's: mpirun -np N test_distributed --library
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/distributed/mpi_ranks.h"

namespace plenum::comm {
namespace {

/// Integers, whose sums do not depend on the order: more than travel with a greeting.
std::vector<std::int64_t> numbers_of(std::size_t member) {
  std::vector<std::int64_t> values(10'007);
  std::iota(values.begin(), values.end(), static_cast<std::int64_t>(1'000'000 * member));
  return values;
}

std::vector<std::int64_t> sums_over(std::size_t num_members) {
  std::vector<std::int64_t> sums = numbers_of(0);
  for (std::size_t member = 1; member < num_members; ++member) {
    const std::vector<std::int64_t> values = numbers_of(member);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  }
  return sums;
}

class LibraryReduction : public testing::Test {
 protected:
  void SetUp() override {
    if (mpi_ranks().reduction != mpi::Reduction::Library) GTEST_SKIP() << "needs --library";
  }
};

TEST_F(LibraryReduction, SumsOverAllAndOverGroups) {
  Communicator& all = *mpi_ranks().all;
  std::vector<std::int64_t> values = numbers_of(all.index());
  all.start_all_reduce(elements_of(std::span(values)), 0).wait();
  EXPECT_EQ(values, sums_over(all.size()));
  if (all.index() > 1) return;
  const std::unique_ptr<Communicator> group = all.group(std::vector<std::size_t>{1, 0});
  values = numbers_of(all.index());
  group->start_all_reduce(elements_of(std::span(values)), 0).wait();
  EXPECT_EQ(values, sums_over(2));
}

TEST_F(LibraryReduction, ScattersIntoPartOfItsSource) {
  Communicator& all = *mpi_ranks().all;
  std::vector<std::int64_t> values = numbers_of(all.index());
  std::vector<std::size_t> counts(all.size(), 1000);
  counts.front() = values.size() - 1000 * (all.size() - 1);
  const std::size_t begin = all.index() == 0 ? 0 : counts.front() + 1000 * (all.index() - 1);
  const Elements whole = elements_of(std::span(values));
  std::vector<std::int64_t> expected = values;
  const std::vector<std::int64_t> sums = sums_over(all.size());
  for (std::size_t i = begin; i < begin + counts[all.index()]; ++i) expected[i] = sums[i];
  all.start_reduce_scatter(whole, whole.part(begin, counts[all.index()]), counts, 0).wait();
  EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace plenum::comm
