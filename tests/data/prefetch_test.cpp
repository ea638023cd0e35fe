#include "plenum/data/batches/prefetch.h"

#include <atomic>
#include <limits>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "plenum/batch/step_batch.h"

#include "tests/data/batch_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

TrainingDataOptions small_steps() {
  TrainingDataOptions options;
  options.global_batch = "5";
  options.micro_batch_tokens = 100;
  return options;
}

TEST(Prefetch, GivesWhatTheSourceMakesFromAnyStep) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 64));
  const StepBatchSource source(sequences, small_steps(), small_model(), 2, 7);
  for (const std::uint64_t first : {std::uint64_t{0}, source.steps_per_epoch() - 2}) {
    Prefetch prefetch(source, first);
    for (std::uint64_t step = first; step < first + 5; ++step) {
      const std::vector<batch::StepBatch> taken = prefetch.take();
      ASSERT_EQ(taken.size(), 2U);
      EXPECT_EQ(taken[0].step, step);
      EXPECT_EQ(taken[0].epoch, step / source.steps_per_epoch());
      EXPECT_EQ(collect(taken), collect(source.make(step)));
    }
  }
}

/// Sequences of which one may be unreadable; counts those read.
class WatchedSequences final : public SequenceSource {
 public:
  explicit WatchedSequences(const SequenceSource& whole, std::optional<std::uint64_t> unreadable = {})
      : whole_(whole), unreadable_(unreadable) {}

  const packing::LengthHistogram& histogram() const override { return whole_.histogram(); }
  std::int64_t max_length() const override { return whole_.max_length(); }
  const MaskingVocabulary& vocabulary() const override { return whole_.vocabulary(); }
  bool has_next_sentence() const override { return false; }
  std::int64_t length(std::uint64_t id) const override { return whole_.length(id); }
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override {
    base::require(id != unreadable_, "the disk is gone");
    ++num_read_;
    whole_.append(id, tokens, segments);
  }
  bool is_random_next(std::uint64_t) const override { return false; }
  std::string name() const override { return "test"; }

  /// Since this was asked last.
  int num_read() const { return num_read_.exchange(0); }

 private:
  const SequenceSource& whole_;
  std::optional<std::uint64_t> unreadable_;
  mutable std::atomic<int> num_read_ = 0;
};

TEST(Prefetch, MakesNoMoreStepsOnceItEnds) {
  const test::SyntheticSequences whole = synthetic(random_lengths(1, 64));
  const WatchedSequences sequences(whole);
  const StepBatchSource source(sequences, small_steps(), small_model(), 1, 7);
  // It ends right after it began: at times before a single step is made, unless steps are made nevertheless.
  int fewest = std::numeric_limits<int>::max();
  for (int i = 0; i < 100; ++i) {
    std::make_unique<Prefetch>(source, 0).reset();
    fewest = std::min(fewest, sequences.num_read());
  }
  EXPECT_LT(fewest, 5 * static_cast<int>(Prefetch::kStepsAhead));
}

TEST(Prefetch, ThrowsWhatTheSourceThrewAtItsStep) {
  const test::SyntheticSequences whole = synthetic(random_lengths(1, 64));
  const StepBatchSource good(whole, small_steps(), small_model(), 1, 7);
  const auto unreadable = static_cast<std::uint64_t>(collect(good.make(3)).begin()->first);
  const WatchedSequences sequences(whole, unreadable);
  const StepBatchSource source(sequences, small_steps(), small_model(), 1, 7);
  Prefetch prefetch(source, 0);
  for (std::uint64_t step = 0; step < 3; ++step) EXPECT_EQ(prefetch.take().front().step, step);
  EXPECT_EQ(test::user_error_of([&] { prefetch.take(); }), "the disk is gone");
  EXPECT_EQ(test::user_error_of([&] { prefetch.take(); }), "the disk is gone");
}

}  // namespace
}  // namespace plenum::data
