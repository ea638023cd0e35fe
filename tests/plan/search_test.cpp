#include "plenum/plan/search.h"

#include <regex>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "plenum/plan/candidate_bounds.h"

#include "tests/plan/made_up_run.h"
#include "tests/support/expect_user_error.h"

namespace plenum::plan {
namespace {

using test::MadeUp;
using test::MadeUpSteps;
using testing::HasSubstr;

describe::ModelDescription deep_model() {
  return describe::describe_bert(
      {.vocabulary = 500, .width = 128, .num_layers = 6, .num_heads = 2, .mlp_width = 256});
}

SearchOptions small_search() {
  return {.grid = test::small_grid(),
          .num_best = 5,
          .most_simulated = 100'000,
          .num_steps = 2,
          .most_replicas = 2};
}

/// Returns how many strategies the search did not simulate.
std::size_t compare_with_all(std::uint64_t num_seeds, const MatrixWork& matrices) {
  std::size_t num_pruned = 0;
  for (std::uint64_t seed = 1; seed <= num_seeds; ++seed) {
    MadeUp made_up(seed);
    const Cluster cluster = made_up.cluster(made_up.coin() ? tensor::Device::Cpu : tensor::Device::Cuda);
    const MadeUpSteps sampler = made_up.steps();
    const StrategyRequest request{
        .model = made_up.model(),
        .num_ranks = std::min<std::size_t>(made_up.one_of<std::size_t>({2, 4, 6}), cluster.num_devices()),
        .matrices = matrices};
    const SearchOptions options = small_search();
    const std::vector<Candidate> all = enumerate(request, options.grid, sampler, cluster);
    if (all.empty()) continue;
    std::vector<double> seconds;
    std::vector<std::size_t> bytes;
    for (const Candidate& candidate : all) {
      const Plan plan = plan_of(candidate, request, sampler, cluster, options);
      seconds.push_back(plan.step.seconds);
      bytes.push_back(plan.memory.peak_bytes());
    }
    // Once with all the memory there is, once with what about half of the strategies need.
    std::vector<std::size_t> sorted = bytes;
    std::ranges::sort(sorted);
    for (const std::size_t limit : {sorted.back(), sorted[sorted.size() / 2]}) {
      std::vector<double> best;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (bytes[i] <= limit) best.push_back(seconds[i]);
      }
      std::ranges::sort(best);
      best.resize(std::min(best.size(), options.num_best));
      SearchOptions limited = options;
      limited.memory_limit_bytes = static_cast<double>(limit);
      const SearchResult result = search(request, "made-up", sampler, cluster, limited);
      EXPECT_GE(result.ranked.size(), best.size()) << "seed " << seed;
      for (std::size_t i = 0; i < std::min(best.size(), result.ranked.size()); ++i)
        EXPECT_DOUBLE_EQ(result.ranked[i].step.seconds, best[i]) << "seed " << seed << ", place " << i;
      EXPECT_EQ(result.num_candidates, all.size());
      EXPECT_FALSE(result.is_cut_off);
      num_pruned += all.size() - result.num_simulated - result.num_too_large;
    }
  }
  return num_pruned;
}

TEST(Search, FindsWhatLookingAtEverythingFinds) {
  EXPECT_GT(compare_with_all(12, {}), 100U);
}

TEST(Search, FindsItAmongFilledPipelinesToo) {
  EXPECT_GT(compare_with_all(4, {.kind = schedule::Preconditioner::Kfac, .fill = BubbleFill::Deferred}), 20U);
}

TEST(Search, DrawsTheFrontierOfTimeAndMemory) {
  MadeUp made_up(7);
  const Cluster cluster = made_up.cluster(tensor::Device::Cpu);
  const StrategyRequest request{.model = made_up.model(), .num_ranks = 4};
  const SearchResult result =
      search(request, "made-up", MadeUpSteps({.items = 48, .max_length = 32}), cluster, small_search());
  ASSERT_GE(result.frontier.size(), 1U);
  EXPECT_EQ(result.frontier.front(), 0U);
  for (std::size_t i = 1; i < result.frontier.size(); ++i) {
    const Plan& plan = result.ranked[result.frontier[i]];
    const Plan& faster = result.ranked[result.frontier[i - 1]];
    EXPECT_GE(plan.step.seconds, faster.step.seconds);
    EXPECT_LT(plan.memory.peak_bytes(), faster.memory.peak_bytes());
  }
  for (const Plan& plan : result.ranked) {
    EXPECT_LE(plan.least_seconds, plan.step.seconds * (1 + 1e-9));
    EXPECT_TRUE(std::ranges::any_of(result.frontier, [&](std::size_t i) {
      return result.ranked[i].memory.peak_bytes() <= plan.memory.peak_bytes();
    }));
  }
}

TEST(Search, SaysWhyNothingFitsAndWhatWould) {
  MadeUp made_up(3);
  Cluster cluster = made_up.cluster(tensor::Device::Cpu);
  cluster.threads = 1;
  const MadeUpSteps sampler({.items = 48, .max_length = 32});
  const StrategyRequest request{.model = deep_model(), .num_ranks = 1};
  SearchOptions options = small_search();
  options.grid.micro_batch_tokens = {1024};
  const SearchResult found = search(request, "made-up", sampler, cluster, options);
  ASSERT_FALSE(found.ranked.empty());
  std::size_t least = found.ranked.front().memory.peak_bytes();
  for (const Plan& plan : found.ranked) least = std::min(least, plan.memory.peak_bytes());

  options.memory_limit_bytes = static_cast<double>(least - 1);
  const SearchResult result = search(request, "made-up", sampler, cluster, options);
  EXPECT_TRUE(result.ranked.empty());
  ASSERT_TRUE(result.reason);
  EXPECT_THAT(*result.reason, HasSubstr("no layout of made-up over 1 rank fits"));
  EXPECT_THAT(*result.reason, HasSubstr("recompute full needs"));
  std::smatch match;
  ASSERT_TRUE(std::regex_search(*result.reason, match, std::regex("--micro-batch-tokens ([0-9]+) would fit")))
      << *result.reason;
  const auto fits = [&](std::int64_t tokens) {
    options.grid.micro_batch_tokens = {tokens};
    return !search(request, "made-up", sampler, cluster, options).ranked.empty();
  };
  EXPECT_TRUE(fits(std::stoll(match[1])));
  EXPECT_FALSE(fits(std::stoll(match[1]) + 1));
}

TEST(Search, StopsAtTheMostThatIsSimulatedAndSaysSo) {
  MadeUp made_up(5);
  const Cluster cluster = made_up.cluster(tensor::Device::Cpu);
  const StrategyRequest request{.model = made_up.model(), .num_ranks = 2};
  SearchOptions options = small_search();
  options.most_simulated = 2;
  const SearchResult result =
      search(request, "made-up", MadeUpSteps({.items = 48, .max_length = 32}), cluster, options);
  EXPECT_EQ(result.num_simulated, 2U);
  EXPECT_TRUE(result.is_cut_off);
}

TEST(Strategies, AreThoseThatTrainAcceptsEachOnce) {
  MadeUp made_up(2);
  Cluster cluster = made_up.cluster(tensor::Device::Cpu);
  cluster.devices_per_node = 8;
  const describe::ModelDescription model = deep_model();
  const std::vector<Candidate> all = enumerate({.model = model, .num_ranks = 8}, test::small_grid(),
                                               MadeUpSteps({.items = 64, .max_length = 32}), cluster);
  std::set<std::string> names;
  std::set<std::string> pipelines;
  for (const Candidate& candidate : all) {
    const Strategy& strategy = candidate.strategy;
    EXPECT_EQ(strategy.num_ranks(), 8U);
    EXPECT_FALSE(reason_against(strategy));
    EXPECT_LE(strategy.slices, 2U) << "two heads are divided by two at most";
    names.insert(fmt::format("{} {} {}", strategy_text(strategy), strategy.bucket_bytes,
                             fmt::join(candidate.stage_begins, ",")));
    if (strategy.depth > 1) pipelines.insert(strategy.pipeline);
  }
  EXPECT_EQ(names.size(), all.size());
  EXPECT_EQ(pipelines, (std::set<std::string>{"1f1b", "chimera", "gpipe", "interleaved", "zb-h1"}));
  EXPECT_THAT(test::user_error_of([&] {
                enumerate({.model = model, .num_ranks = 1000}, test::small_grid(),
                          MadeUpSteps({.items = 64, .max_length = 32}), cluster);
              }),
              HasSubstr("devices: --ranks is 1000"));
}

}  // namespace
}  // namespace plenum::plan
