#include "plenum/describe/counted_elements.h"

#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"

namespace plenum::describe {
namespace {

using ElementRange = ParameterTable::ElementRange;

ParameterTable small_table() {
  return ParameterTable(describe::describe_bert({.vocabulary = 97,
                                                 .width = 20,
                                                 .num_layers = 6,
                                                 .num_heads = 4,
                                                 .mlp_width = 64,
                                                 .max_positions = 24,
                                                 .has_next_sentence = true}));
}

TEST(CountedElements, CountsEveryElementOfTheTableOnce) {
  const ParameterTable table = small_table();
  // Stages, and inside them the ranges of layers that are reduced by themselves: whole stages, or buckets.
  for (const std::uint16_t num_stages : {1, 2, 3, 6}) {
    const auto stage_layers = static_cast<std::uint16_t>(6 / num_stages);
    for (std::uint16_t num_buckets = 1; num_buckets <= stage_layers; ++num_buckets) {
      for (std::size_t num_holders = 1; num_holders <= 5; ++num_holders) {
        std::vector<int> times_counted(static_cast<std::size_t>(table.num_elements()));
        for (std::uint16_t stage = 0; stage < num_stages; ++stage) {
          for (std::uint16_t bucket = 0; bucket < num_buckets; ++bucket) {
            const auto border = [&](int index) {
              return base::LayerId::at(
                  static_cast<std::size_t>(stage * stage_layers + stage_layers * index / num_buckets));
            };
            for (std::size_t holder = 0; holder < num_holders; ++holder) {
              const ElementRange own = counted_elements(
                  table.elements_of_layers(border(bucket), border(bucket + 1)), holder, num_holders);
              EXPECT_EQ(own.begin % 128, 0);
              for (std::int64_t i = own.begin; i < own.end; ++i) ++times_counted[static_cast<std::size_t>(i)];
            }
          }
        }
        EXPECT_EQ(times_counted, std::vector<int>(times_counted.size(), 1))
            << num_stages << " stages, " << num_buckets << " buckets, " << num_holders << " holders";
      }
    }
  }
}

TEST(CountedElements, GivesAllToOneHolder) {
  const ElementRange all = counted_elements({7, 1000}, 0, 1);
  EXPECT_EQ(all.begin, 7);
  EXPECT_EQ(all.end, 1000);
}

TEST(CountedElements, GivesEqualPartsUpToTheirAlignment) {
  for (std::size_t holder = 0; holder < 3; ++holder) {
    const ElementRange own = counted_elements({256, 256 + 128 * 7 + 5}, holder, 3);
    EXPECT_GE(own.end - own.begin, 2 * 128);
    EXPECT_LE(own.end - own.begin, 3 * 128 + 5);
  }
}

TEST(CountedElements, TakesARangeThatIsSmallerThanItsParts) {
  std::int64_t end = 128;
  for (std::size_t holder = 0; holder < 5; ++holder) {
    const ElementRange own = counted_elements({128, 140}, holder, 5);
    EXPECT_EQ(own.begin, end);
    end = own.end;
  }
  EXPECT_EQ(end, 140);
}

TEST(CountedElements, RefusesAHolderThatThereIsNot) {
  EXPECT_THROW(counted_elements({0, 10}, 2, 2), base::InternalError);
}

}  // namespace
}  // namespace plenum::describe
