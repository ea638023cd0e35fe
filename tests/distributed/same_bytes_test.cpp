#include <cstring>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/comm/local/local_world.h"

#include "tests/distributed/mpi_ranks.h"

namespace plenum::comm {
namespace {

/// Elements of a member, the same in every process that asks: values of very different size, so that the
/// order of a sum shows in its last bits.
template <typename Element>
std::vector<Element> random_elements(std::size_t member, std::size_t count) {
  std::mt19937_64 random(1000 * count + member);
  std::vector<Element> values(count);
  for (Element& value : values) {
    if constexpr (std::is_floating_point_v<Element>) {
      value = std::ldexp(static_cast<Element>(static_cast<std::int64_t>(random())),
                         static_cast<int>(random() % 60) - 90);
    } else {
      value = static_cast<Element>(static_cast<std::int64_t>(random()) >> 16);
    }
  }
  return values;
}

/// What every member of a world of threads has after `work` on its elements.
template <typename Element>
std::vector<std::vector<Element>> run_local(
    std::size_t num_ranks, std::size_t count,
    const std::function<void(Communicator&, std::vector<Element>&)>& work) {
  local::LocalWorld world(num_ranks);
  std::vector<std::vector<Element>> results(num_ranks);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      results[rank] = random_elements<Element>(rank, count);
      work(*world.communicator(Rank::at(rank)), results[rank]);
    });
  }
  threads.clear();
  return results;
}

/// Parts that are as uneven as can be: some empty, one large.
std::vector<std::size_t> uneven_counts(std::size_t count, std::size_t num_parts) {
  std::vector<std::size_t> counts(num_parts);
  std::mt19937_64 random(count);
  std::size_t left = count;
  for (std::size_t part = 0; part + 1 < num_parts; ++part) {
    counts[part] = random() % 4 == 0 ? 0 : random() % (left + 1);
    left -= counts[part];
  }
  counts.back() = left;
  return counts;
}

template <typename Element>
class SameBytes : public testing::Test {
 protected:
  void compare(const std::function<void(Communicator&, std::vector<Element>&)>& work) {
    Communicator& all = *mpi_ranks().all;
    for (const std::size_t count :
         {1, 2, 3, 40, 63, 64, 65, 255, 256, 257, 511, 513, 1000, 4097, 65'537, 262'147, 1'000'003}) {
      std::vector<Element> own = random_elements<Element>(all.index(), count);
      work(all, own);
      const std::vector<Element> expected = run_local<Element>(all.size(), count, work)[all.index()];
      ASSERT_EQ(own.size(), expected.size());
      EXPECT_EQ(std::memcmp(own.data(), expected.data(), own.size() * sizeof(Element)), 0) << count;
    }
  }
};

using Types = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(SameBytes, Types);

TYPED_TEST(SameBytes, OfAnAllReduceOverMpiAndOverThreads) {
  this->compare([](Communicator& all, std::vector<TypeParam>& values) {
    all.start_all_reduce(elements_of(std::span(values)), 3).wait();
  });
}

TYPED_TEST(SameBytes, OfAReduceScatterOverMpiAndOverThreads) {
  this->compare([](Communicator& all, std::vector<TypeParam>& values) {
    const std::vector<std::size_t> counts = uneven_counts(values.size(), all.size());
    std::size_t begin = 0;
    for (std::size_t member = 0; member < all.index(); ++member) begin += counts[member];
    const Elements whole = elements_of(std::span(values));
    all.start_reduce_scatter(whole, whole.part(begin, counts[all.index()]), counts, 3).wait();
  });
}

TEST(MpiCollectives, DISABLED_SoakCarryMoreThanTwoBillionElements) {
  Communicator& all = *mpi_ranks().all;
  constexpr std::size_t kCount = (std::size_t{1} << 31) + 12'345;
  std::vector<std::byte> bytes(kCount);
  for (std::size_t i = 0; all.index() == 0 && i < kCount; i += 4099)
    bytes[i] = static_cast<std::byte>(i % 251);
  all.start_broadcast(elements_of(std::span(bytes)), 0, 0).wait();
  std::size_t num_wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    num_wrong += bytes[i] != (i % 4099 == 0 ? static_cast<std::byte>(i % 251) : std::byte{0}) ? 1 : 0;
  }
  EXPECT_EQ(num_wrong, 0u);
}

}  // namespace
}  // namespace plenum::comm
