#include "plenum/plan/waiting.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/data/batches/even_division.h"
#include "plenum/packing/histogram_text.h"

namespace plenum::plan {
namespace {

using packing::LengthHistogram;

LengthHistogram read_histogram(const std::string& name) {
  const std::string path = std::string(PLENUM_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  packing::HistogramText text(packing::HistogramText::Form::Histogram, path);
  text.feed(std::string(std::istreambuf_iterator<char>(file), {}));
  return text.finish();
}

/// Of BERT-base: of a token 12 (24 D^2) operations, of a pair 12 (4 D), in millions.
constexpr LengthCost kBert = {.of_token = 169.9, .of_pair = 0.0369};

/// Draws costs of sequences.
class Draws {
 public:
  Draws(const LengthHistogram& histogram, const LengthCost& cost) : random_(11) {
    for (std::size_t length = 0; length < histogram.counts.size(); ++length) {
      weights_.push_back(static_cast<double>(histogram.counts[length]));
      costs_.push_back(cost.at(static_cast<double>(length)));
    }
    lengths_ = std::discrete_distribution<std::size_t>(weights_.begin(), weights_.end());
  }

  double one() { return costs_[lengths_(random_)]; }
  double most_at_random(std::size_t sequences_per_rank, std::size_t num_ranks) {
    double most = 0;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      double sum = 0;
      for (std::size_t i = 0; i < sequences_per_rank; ++i) sum += one();
      most = std::max(most, sum);
    }
    return most;
  }
  double most_evenly(std::size_t sequences_per_rank, std::size_t num_ranks) {
    std::vector<double> costs(sequences_per_rank * num_ranks);
    for (double& cost : costs) cost = one();
    double most = 0;
    for (const std::vector<std::size_t>& part : data::divide_evenly(costs, num_ranks)) {
      double sum = 0;
      for (const std::size_t item : part) sum += costs[item];
      most = std::max(most, sum);
    }
    return most;
  }

 private:
  std::vector<double> weights_;
  std::vector<double> costs_;
  std::discrete_distribution<std::size_t> lengths_;
  std::mt19937_64 random_;
};

TEST(Waiting, KnowsTheMaximaOfNormalNumbers) {
  EXPECT_NEAR(expected_normal_maximum(1), 0, 1e-12);
  EXPECT_NEAR(expected_normal_maximum(2), 0.5641895835, 1e-9);  // 1 / sqrt(pi)
  EXPECT_NEAR(expected_normal_maximum(3), 0.8462843753, 1e-9);  // 3 / (2 sqrt(pi))
  EXPECT_NEAR(expected_normal_maximum(8), 1.4236003, 1e-6);     // tables of order statistics
  EXPECT_NEAR(expected_normal_maximum(1000), 3.2414, 1e-4);
  EXPECT_NEAR(expected_normal_maximum(10000), 3.8516, 1e-3);
}

TEST(Waiting, HasTheMomentsOfCosts) {
  // Lengths 2, 2 and 5, cost 1 + 3 n + n^2 = 11, 11, 41.
  const LengthHistogram histogram{.counts = {0, 0, 2, 0, 0, 1}};
  const CostMoments moments = cost_moments(histogram, {.of_sequence = 1, .of_token = 3, .of_pair = 1});
  EXPECT_DOUBLE_EQ(moments.mean, 21);
  EXPECT_DOUBLE_EQ(moments.variance, 200);
  EXPECT_NEAR(moments.skewness, (2 * -1000 + 8000) / 3.0 / std::pow(200, 1.5), 1e-12);
  EXPECT_NEAR(moments.kurtosis, (2 * 10000 + 160000) / 3.0 / 40000 - 3, 1e-12);
  EXPECT_EQ(moments.least, 11);
  EXPECT_EQ(moments.most, 41);
  EXPECT_THROW(cost_moments({}, kBert), base::InternalError);
}

TEST(Waiting, AtRandomIsWhatDrawingGives) {
  for (const char* const name : {"wikipedia_512_histogram.txt", "squad_1_1_384_histogram.txt"}) {
    const LengthHistogram histogram = read_histogram(name);
    Draws draws(histogram, kBert);
    for (const std::size_t num_ranks : {2, 32, 512, 4096}) {
      for (const std::size_t sequences_per_rank : {1, 4, 16, 32}) {
        const std::size_t num_drawn = sequences_per_rank * num_ranks;
        const std::size_t num_draws = std::clamp<std::size_t>(80'000 / num_drawn, 2, 20'000);
        double drawn = 0;
        for (std::size_t i = 0; i < num_draws; ++i)
          drawn += draws.most_at_random(sequences_per_rank, num_ranks) / static_cast<double>(num_draws);
        const RankCosts expected =
            expected_rank_costs(histogram, kBert, sequences_per_rank, num_ranks, Division::AtRandom);
        EXPECT_NEAR(expected.expected_most / drawn, 1, 0.03)
            << name << " " << num_ranks << " ranks of " << sequences_per_rank;
        EXPECT_GT(expected.waiting(), 0);
      }
    }
  }
}

TEST(Waiting, EvenlyIsWhatTheDivisionLeaves) {
  for (const char* const name : {"wikipedia_512_histogram.txt", "squad_1_1_384_histogram.txt"}) {
    const LengthHistogram histogram = read_histogram(name);
    Draws draws(histogram, kBert);
    for (const std::size_t num_ranks : {2, 8, 64}) {
      for (const std::size_t sequences_per_rank : {1, 2, 3, 4, 6, 8, 32}) {
        const int kDraws =
            static_cast<int>(std::clamp<std::size_t>(8000 / (num_ranks * sequences_per_rank), 10, 1000));
        double drawn = 0;
        for (int i = 0; i < kDraws; ++i) drawn += draws.most_evenly(sequences_per_rank, num_ranks) / kDraws;
        const RankCosts expected =
            expected_rank_costs(histogram, kBert, sequences_per_rank, num_ranks, Division::Evenly);
        const bool is_of_sample = sequences_per_rank > 1 && sequences_per_rank < 6;
        EXPECT_NEAR(expected.expected_most / drawn, 1, is_of_sample ? 0.08 : 0.03)
            << name << " " << num_ranks << " ranks of " << sequences_per_rank;
      }
    }
  }
}

TEST(Waiting, IsNothingForOneRankOrOneLength) {
  const LengthHistogram histogram = read_histogram("wikipedia_512_histogram.txt");
  EXPECT_EQ(expected_rank_costs(histogram, kBert, 4, 1, Division::AtRandom).waiting(), 0);
  const LengthHistogram same{.counts = {0, 0, 0, 7}};
  for (const Division division : {Division::AtRandom, Division::Evenly}) {
    const RankCosts costs = expected_rank_costs(same, kBert, 4, 1000, division);
    EXPECT_NEAR(costs.waiting() / costs.mean, 0, 1e-12);
    EXPECT_DOUBLE_EQ(costs.mean, 4 * kBert.at(3));
  }
}

}  // namespace
}  // namespace plenum::plan
