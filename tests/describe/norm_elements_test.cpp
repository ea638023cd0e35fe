#include "plenum/describe/norm_elements.h"

#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/describe/counted_elements.h"

namespace plenum::describe {
namespace {

/// As wide as no tensor is that ends where the next may begin.
ParameterTable narrow_table() {
  ModelConfig config = preset("bert-tiny");
  config.width = 96;
  config.num_heads = 2;
  return ParameterTable(describe_bert(config));
}

bool is_of_norm(const Parameter& parameter) {
  return parameter.kind == ParameterKind::NormWeight || parameter.kind == ParameterKind::NormBias;
}

TEST(NormElements, AreThoseOfNormsInTheOrderOfTheTable) {
  const ParameterTable table = narrow_table();
  const NormElements norms(table);
  std::int64_t end = 0;
  for (const NormElements::Run& run : norms.runs()) {
    EXPECT_EQ(run.begin, end);
    EXPECT_EQ(run.begin % 128, 0);
    end += run.elements.end - run.elements.begin;
  }
  EXPECT_EQ(norms.count(), end);
  std::int64_t num_norms = 0;
  for (const Parameter& parameter : table.parameters()) {
    const std::int64_t expected = is_of_norm(parameter) ? parameter.num_elements() : 0;
    EXPECT_EQ(norms.count_within({parameter.begin, parameter.end()}), expected) << parameter.name;
    if (!is_of_norm(parameter)) continue;
    ASSERT_EQ(norms.within({parameter.begin, parameter.end()}).size(), 1U) << parameter.name;
    num_norms += parameter.num_elements();
  }
  EXPECT_EQ(num_norms, 96 * 2 * (1 + 1 + 2 * 2));
  EXPECT_EQ(norms.count(), 128 * 2 * (1 + 1 + 2 * 2));
}

TEST(NormElements, OfThePartsOfARangeAreOneBehindAnother) {
  const ParameterTable table = narrow_table();
  const NormElements norms(table);
  const auto bucket = table.elements_of_layers(base::LayerId::at(1), base::LayerId::at(2));
  const std::vector<NormElements::Run> of_bucket = norms.within(bucket);
  ASSERT_FALSE(of_bucket.empty());
  std::int64_t next = of_bucket.front().begin;
  for (std::size_t holder = 0; holder < 3; ++holder) {
    const auto part = counted_elements(bucket, holder, 3);
    for (const NormElements::Run& run : norms.within(part)) {
      EXPECT_EQ(run.begin, next);
      next += run.elements.end - run.elements.begin;
    }
  }
  EXPECT_EQ(next, of_bucket.front().begin + norms.count_within(bucket));
}

}  // namespace
}  // namespace plenum::describe
