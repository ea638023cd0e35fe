#include "plenum/pipeline/recording_cache.h"

#include <random>

#include <gtest/gtest.h>

namespace plenum::pipeline {
namespace {

constexpr std::size_t kMostNodes = 32;
constexpr std::size_t kWindow = 512;

/// What became of all recordings.
struct Ledger {
  std::size_t num_made = 0;
  std::size_t nodes_made = 0;
  std::size_t nodes_alive = 0;
};

class FakeRecording {
 public:
  FakeRecording(Ledger* ledger, std::size_t num_nodes) : ledger_(ledger), num_nodes_(num_nodes) {
    ++ledger_->num_made;
    ledger_->nodes_made += num_nodes_;
    ledger_->nodes_alive += num_nodes_;
  }
  ~FakeRecording() { ledger_->nodes_alive -= num_nodes_; }
  FakeRecording(const FakeRecording&) = delete;
  FakeRecording& operator=(const FakeRecording&) = delete;
  std::size_t num_nodes() const { return num_nodes_; }

 private:
  Ledger* ledger_;
  std::size_t num_nodes_;
};

enum class Outcome { AsItIs, Recorded, Replayed };

class RecordingCacheTest : public testing::Test {
 protected:
  Outcome use(int key, std::size_t num_nodes = 1) {
    const std::size_t num_made = ledger_.num_made;
    if (cache_.use(key, &ledger_, num_nodes) == nullptr) return Outcome::AsItIs;
    return ledger_.num_made > num_made ? Outcome::Recorded : Outcome::Replayed;
  }
  /// Uses the keys from `begin` to `end` in turn and says how many were replayed.
  int replays_of_round(int begin, int end) {
    int num_replays = 0;
    for (int key = begin; key < end; ++key) num_replays += use(key) == Outcome::Replayed ? 1 : 0;
    return num_replays;
  }

  Ledger ledger_;
  RecordingCache<int, FakeRecording> cache_{kMostNodes, kWindow};
};

TEST_F(RecordingCacheTest, RecordsTheSecondTimeAndReplaysFromThenOn) {
  EXPECT_EQ(use(7), Outcome::AsItIs);
  EXPECT_EQ(use(7), Outcome::Recorded);
  for (std::size_t i = 0; i < 3 * kWindow; ++i) ASSERT_EQ(use(7), Outcome::Replayed);
}

TEST_F(RecordingCacheTest, KeepsWhatReplaysWhileOtherWorkComesOnce) {
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(use(-1), i == 0 ? Outcome::AsItIs : i == 1 ? Outcome::Recorded : Outcome::Replayed);
    ASSERT_EQ(use(i), Outcome::AsItIs);
  }
  EXPECT_EQ(ledger_.num_made, 1U);
}

TEST_F(RecordingCacheTest, ReplaysAPartOfWorkInTurnThatItCannotHold) {
  constexpr int kNumKeys = 476;
  EXPECT_EQ(replays_of_round(0, kNumKeys), 0);
  EXPECT_EQ(replays_of_round(0, kNumKeys), 0);
  for (int round = 0; round < 20; ++round) ASSERT_EQ(replays_of_round(0, kNumKeys), kMostNodes);
  EXPECT_EQ(ledger_.num_made, kMostNodes);
}

TEST_F(RecordingCacheTest, RecordsNothingThatComesAgainOnlyBehindTheWindow) {
  for (int round = 0; round < 5; ++round) replays_of_round(0, kWindow + 1);
  EXPECT_EQ(ledger_.num_made, 0U);
}

TEST_F(RecordingCacheTest, GivesPlacesOfWhatCameToAnEndToWhatIsNew) {
  constexpr int kNumKeys = kMostNodes;
  for (int round = 0; round < 3; ++round) replays_of_round(0, kNumKeys);
  EXPECT_EQ(ledger_.nodes_alive, kMostNodes);
  // Until the window has passed, what is new must do without.
  for (std::size_t i = 1; i < kWindow / kMostNodes; ++i) {
    ASSERT_EQ(replays_of_round(kNumKeys, 2 * kNumKeys), 0);
    ASSERT_EQ(ledger_.num_made, kMostNodes);
  }
  for (int round = 0; round < 2; ++round) replays_of_round(kNumKeys, 2 * kNumKeys);
  EXPECT_EQ(replays_of_round(kNumKeys, 2 * kNumKeys), kNumKeys);
  EXPECT_EQ(ledger_.num_made, 2 * kMostNodes);
  EXPECT_EQ(ledger_.nodes_alive, kMostNodes);
}

TEST_F(RecordingCacheTest, BoundsRecordingsOfWorkInAnyOrder) {
  constexpr std::size_t kLargest = 9;
  constexpr std::size_t kNumWindows = 50;
  for (const unsigned num_keys : {40U, 200U, 1000U}) {
    std::mt19937 random(5);
    const std::size_t nodes_before = ledger_.nodes_made;
    for (std::size_t i = 0; i < kNumWindows * kWindow; ++i) {
      const unsigned key = random() % num_keys;
      use(static_cast<int>(key), 1 + key % kLargest);
      ASSERT_LT(ledger_.nodes_alive, kMostNodes + kLargest);
    }
    EXPECT_LT(ledger_.nodes_made - nodes_before, kNumWindows * (kMostNodes + kLargest));
    EXPECT_GT(ledger_.nodes_alive, 0U);
  }
}

}  // namespace
}  // namespace plenum::pipeline
