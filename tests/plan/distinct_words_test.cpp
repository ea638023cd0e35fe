#include "plenum/plan/distinct_words.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace plenum::plan {
namespace {

TEST(ExpectedDistinctWords, IsWhatDrawingGives) {
  constexpr int kVocabulary = 5000;
  std::vector<double> cumulative;
  double sum = 0;
  for (int rank = 1; rank <= kVocabulary; ++rank) cumulative.push_back(sum += 1.0 / rank);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, sum);
  for (const int num_tokens : {1, 10, 1000, 20000}) {
    constexpr int kDraws = 20;
    double distinct = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::set<std::ptrdiff_t> words;
      for (int token = 0; token < num_tokens; ++token)
        words.insert(std::ranges::upper_bound(cumulative, uniform(random)) - cumulative.begin());
      distinct += static_cast<double>(words.size()) / kDraws;
    }
    EXPECT_NEAR(expected_distinct_words(num_tokens, kVocabulary) / distinct, 1, num_tokens < 100 ? 0.1 : 0.01)
        << num_tokens;
  }
}

TEST(ExpectedDistinctWords, IsNeverMoreThanTokensOrWords) {
  EXPECT_EQ(expected_distinct_words(0, 100), 0);
  EXPECT_NEAR(expected_distinct_words(1, 30522), 1, 1e-3);
  EXPECT_LE(expected_distinct_words(50, 30522), 50);
  EXPECT_NEAR(expected_distinct_words(1e9, 30522), 30522, 1);
  EXPECT_EQ(expected_distinct_words(5, 1), 1);
}

}  // namespace
}  // namespace plenum::plan
