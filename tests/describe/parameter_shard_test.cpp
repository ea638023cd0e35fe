#include "plenum/describe/parameter_shard.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"

namespace plenum::describe {
namespace {

using base::LayerId;

ParameterTable small_table() {
  return ParameterTable(describe_bert({.vocabulary = 97,
                                       .width = 20,
                                       .num_layers = 6,
                                       .num_heads = 4,
                                       .mlp_width = 64,
                                       .max_positions = 24}));
}

TEST(ParameterShard, OfTheOnlyHolderIsEverything) {
  const ParameterTable table = small_table();
  const ParameterShard shard(table);
  EXPECT_TRUE(shard.is_whole());
  EXPECT_EQ(shard.num_elements(), table.num_elements());
  ASSERT_EQ(shard.buckets().size(), 1U);
  EXPECT_EQ(shard.buckets().front().begin, 0);
}

TEST(ParameterShard, OfAllHoldersTogetherIsEveryElementOnce) {
  const ParameterTable table = small_table();
  const std::vector<ParameterShard::LayerRange> buckets = {
      {LayerId::at(4), LayerId::at(6)}, {LayerId::at(0), LayerId::at(1)}, {LayerId::at(1), LayerId::at(4)}};
  constexpr std::size_t kHolders = 3;
  std::vector<int> times_held(static_cast<std::size_t>(table.num_elements()));
  for (std::size_t holder = 0; holder < kHolders; ++holder) {
    const ParameterShard shard(table, buckets, holder, kHolders);
    EXPECT_FALSE(shard.is_whole());
    std::int64_t behind = 0;
    for (const ParameterShard::Bucket& bucket : shard.buckets()) {
      EXPECT_EQ(bucket.begin, behind);
      behind += bucket.num_own();
      ASSERT_EQ(bucket.counts.size(), kHolders);
      EXPECT_EQ(static_cast<std::int64_t>(bucket.counts[holder]), bucket.num_own());
      for (std::int64_t i = bucket.own.begin; i < bucket.own.end; ++i)
        ++times_held[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(shard.num_elements(), behind);
  }
  EXPECT_EQ(times_held, std::vector<int>(times_held.size(), 1));
}

TEST(ParameterShard, FindsABucketByItsLayers) {
  const ParameterTable table = small_table();
  const std::vector<ParameterShard::LayerRange> buckets = {{LayerId::at(0), LayerId::at(2)},
                                                           {LayerId::at(2), LayerId::at(6)}};
  const ParameterShard shard(table, buckets, 1, 2);
  EXPECT_EQ(shard.bucket(LayerId::at(2), LayerId::at(6)).elements.begin, 0);
  EXPECT_EQ(shard.bucket(LayerId::at(0), LayerId::at(2)).elements.end, table.num_elements());
  EXPECT_THROW(shard.bucket(LayerId::at(0), LayerId::at(6)), base::InternalError);
}

TEST(ParameterShard, RefusesBucketsThatLeaveLayersOut) {
  const ParameterTable table = small_table();
  const std::vector<ParameterShard::LayerRange> buckets = {{LayerId::at(0), LayerId::at(2)},
                                                           {LayerId::at(3), LayerId::at(6)}};
  EXPECT_THROW(ParameterShard(table, buckets, 0, 2), base::InternalError);
}

}  // namespace
}  // namespace plenum::describe
