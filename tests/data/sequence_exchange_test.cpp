#include "plenum/data/batches/sequence_exchange.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/comm/local/local_world.h"
#include "plenum/data/batches/prefetch.h"

#include "tests/data/batch_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using comm::local::LocalWorld;

/// Sequences of which only those of some shards can be read.
class SomeShards final : public SequenceSource {
 public:
  SomeShards(const SequenceSource& whole, std::vector<bool> here) : whole_(whole), here_(std::move(here)) {}

  const packing::LengthHistogram& histogram() const override { return whole_.histogram(); }
  std::int64_t max_length() const override { return whole_.max_length(); }
  const MaskingVocabulary& vocabulary() const override { return whole_.vocabulary(); }
  bool has_next_sentence() const override { return whole_.has_next_sentence(); }
  std::int64_t length(std::uint64_t id) const override { return whole_.length(id); }
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override {
    require_here(id);
    whole_.append(id, tokens, segments);
  }
  bool is_random_next(std::uint64_t id) const override {
    require_here(id);
    return whole_.is_random_next(id);
  }
  std::string name() const override { return whole_.name(); }
  const std::vector<bool>& here() const { return here_; }

 private:
  void require_here(std::uint64_t id) const {
    base::check(here_[id % here_.size()], "sequence {} is not here", id);
  }

  const SequenceSource& whole_;
  std::vector<bool> here_;
};

TrainingDataOptions small_steps() {
  TrainingDataOptions options;
  options.global_batch = "14";
  options.micro_batch_tokens = 100;
  return options;
}

/// Ranks are threads.
class SequenceExchangeTest : public testing::Test {
 protected:
  /// What each rank has, by shard: "10" is the first of two.
  using Holdings = std::vector<std::string>;

  static std::vector<bool> shards_of(const std::string& text) {
    std::vector<bool> here;
    for (const char letter : text) here.push_back(letter == '1');
    return here;
  }

  /// Calls `work` for every rank on a thread of its own; what it throws aborts the others.
  static std::vector<std::exception_ptr> run(
      std::size_t num_ranks, const std::function<void(std::size_t, comm::Communicator&)>& work) {
    LocalWorld world(num_ranks);
    std::vector<std::exception_ptr> errors(num_ranks);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const std::unique_ptr<comm::Communicator> ranks = world.communicator(comm::Rank::at(rank));
        try {
          work(rank, *ranks);
        } catch (const std::exception& error) {
          errors[rank] = std::current_exception();
          ranks->abort_all(comm::Rank::at(rank), error.what());
        }
      });
    }
    threads.clear();
    return errors;
  }

  static void expect_no_error(const std::vector<std::exception_ptr>& errors) {
    for (const std::exception_ptr& error : errors) {
      if (error) EXPECT_NO_THROW(std::rethrow_exception(error));
    }
  }

  /// Every rank works on what it would with all sequences at hand.
  static void expect_same_batches(const SequenceSource& whole, const Holdings& holdings,
                                  std::size_t ranks_per_replica) {
    const std::size_t num_replicas = holdings.size() / ranks_per_replica;
    describe::ModelConfig model = small_model();
    model.vocabulary = whole.vocabulary().size;
    model.has_next_sentence = whole.has_next_sentence();
    const StepBatchSource expected(whole, small_steps(), model, num_replicas, 7);
    expect_no_error(run(holdings.size(), [&](std::size_t index, comm::Communicator& ranks) {
      const SomeShards own(whole, shards_of(holdings[index]));
      const StepBatchSource source(own, small_steps(), model, num_replicas, 7);
      const base::Rank rank = base::Rank::at(index / ranks_per_replica);
      SequenceExchange exchange(own, own.here(), ranks.duplicate(), ranks_per_replica);
      {
        Prefetch prefetch(source, 3, rank, &exchange);
        for (std::uint64_t step = 3; step < 9; ++step)
          EXPECT_EQ(collect(prefetch.take()), collect({expected.make(step, rank)})) << step;
      }
      const bool lacks_some = holdings[index].find('0') != std::string::npos;
      EXPECT_EQ(exchange.num_arrived_bytes() > 0, lacks_some) << index;
    }));
  }
};

TEST_F(SequenceExchangeTest, BringsEveryRankWhatItWorksOn) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const Holdings holdings[] = {
      {"10", "01"},                // each a shard
      {"100", "010", "001"},       //
      {"1010", "0101", "0000"},    // several, or none
      {"10", "10", "01", "01"},    // two machines of two ranks
      {"11", "11"},                // all of them, so nothing travels
      {"10", "11"},                // some twice
      {"11111", "00000", "00000"}  // all on one
  };
  for (const Holdings& of_ranks : holdings) {
    SCOPED_TRACE(testing::PrintToString(of_ranks));
    expect_same_batches(sequences, of_ranks, 1);
  }
}

TEST_F(SequenceExchangeTest, BringsPairsWithTheirSegmentsAndLabels) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64), true);
  expect_same_batches(sequences, {"10", "01"}, 1);
}

TEST_F(SequenceExchangeTest, BringsTokensOfLargeVocabularies) {
  const test::SyntheticSequences sequences(random_lengths(1, 64),
                                           {.vocabulary = 100'000, .has_next_sentence = false}, 3);
  expect_same_batches(sequences, {"10", "01"}, 1);
}

TEST_F(SequenceExchangeTest, BringsRanksThatHoldAModelTogetherTheSame) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  expect_same_batches(sequences, {"1000", "0100", "0010", "0001"}, 2);
  expect_same_batches(sequences, {"10", "01"}, 2);
}

TEST_F(SequenceExchangeTest, RefusesOnEveryRankAShardThatNobodyHas) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const Holdings holdings = {"1000", "0010"};
  expect_no_error(run(2, [&](std::size_t rank, comm::Communicator& ranks) {
    test::expect_user_error(
        [&] { SequenceExchange(sequences, shards_of(holdings[rank]), ranks.duplicate()); },
        "of the 4 shards of the dataset no process has 1, 3;");
  }));
}

TEST_F(SequenceExchangeTest, MayEndOnOneRankWhileAnotherHasYetToMakeItsSteps) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const Holdings holdings = {"10", "01"};
  for (int i = 0; i < 50; ++i) {
    expect_no_error(run(2, [&](std::size_t rank, comm::Communicator& ranks) {
      const StepBatchSource source(sequences, small_steps(), small_model(), 2, 7);
      SequenceExchange exchange(sequences, shards_of(holdings[rank]), ranks.duplicate());
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(i % 5));
      Prefetch prefetch(source, 0, base::Rank::at(rank), &exchange);
      for (int step = 0; step < i % 3; ++step) prefetch.take();
    }));
  }
}

TEST_F(SequenceExchangeTest, EndsWhereAnotherRankFails) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const Holdings holdings = {"10", "01"};
  const std::vector<std::exception_ptr> errors = run(2, [&](std::size_t rank, comm::Communicator& ranks) {
    const StepBatchSource source(sequences, small_steps(), small_model(), 2, 7);
    SequenceExchange exchange(sequences, shards_of(holdings[rank]), ranks.duplicate());
    base::require(rank == 0, "the disk is gone");
    Prefetch prefetch(source, 0, base::Rank::at(rank), &exchange);
    prefetch.take();
  });
  EXPECT_THROW(std::rethrow_exception(errors[0]), comm::Aborted);
  EXPECT_THROW(std::rethrow_exception(errors[1]), base::UserError);
}

}  // namespace
}  // namespace plenum::data
