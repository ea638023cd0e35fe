#include "plenum/data/batches/micro_batch_assembly.h"

#include <set>

#include <gtest/gtest.h>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/data/batches/micro_batch_builder.h"

#include "tests/data/batch_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<BatchSequence> sequences_of(const std::vector<std::int64_t>& lengths) {
  std::vector<BatchSequence> sequences;
  for (const std::int64_t length : lengths)
    sequences.push_back({.id = sequences.size(), .length = length, .labels = {masked_count(length, 0.15)}});
  return sequences;
}

std::vector<std::vector<std::int64_t>> lengths_in(const std::vector<MicroBatchPlan>& plans) {
  std::vector<std::vector<std::int64_t>> lengths;
  for (const MicroBatchPlan& plan : plans) {
    lengths.emplace_back();
    for (const PlacedSequence& placed : plan.sequences) lengths.back().push_back(placed.length);
  }
  return lengths;
}

constexpr batch::Capacity kCapacity{.rows = 20, .sequences = 20, .labels = {100}, .max_length = 20};

TEST(FillMicroBatches, PutsEachSequenceWhereItFitsBest) {
  const auto sequences = sequences_of({3, 12, 8, 15, 5});
  const auto plans = fill_micro_batches(cut_items({}, sequences, Layout::Unpadded, 20), kCapacity);
  EXPECT_THAT(lengths_in(plans), ElementsAre(ElementsAre(15, 5), ElementsAre(12, 8), ElementsAre(3)));
  EXPECT_EQ(plans[0].sequences[1].start, 15);
  EXPECT_EQ(plans[0].num_rows, 20);
  EXPECT_EQ(plans[2].num_rows, 3);
}

TEST(FillMicroBatches, StopsWhereTooManyTokensWouldBeMasked) {
  const auto sequences = sequences_of({5, 5, 5, 5});
  batch::Capacity capacity = kCapacity;
  capacity.labels[0] = 3;
  const auto plans = fill_micro_batches(cut_items({}, sequences, Layout::Unpadded, 20), capacity);
  EXPECT_THAT(lengths_in(plans), ElementsAre(ElementsAre(5, 5, 5), ElementsAre(5)));
}

TEST(FillMicroBatches, FillsBestWhicheverOfRowsAndMaskedTokensIsScarce) {
  const base::RandomFunction random(21, base::Purpose::Holdout);
  for (std::uint64_t index = 0; index < 50; ++index) {
    std::vector<BatchItem> items;
    for (std::uint32_t i = 0; i < 60; ++i) {
      const base::PhiloxCounter bits = random(index, i);
      items.push_back({.sequences = {}, .num_rows = 1 + bits[0] % 9, .labels = bits[1] % 4});
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const BatchItem& a, const BatchItem& b) { return a.num_rows > b.num_rows; });
    batch::Capacity capacity = kCapacity;
    capacity.labels[0] = 3 + static_cast<std::int64_t>(index % 6);
    std::vector<std::pair<std::int64_t, std::int64_t>> expected;  // rows and masked tokens of each
    for (const BatchItem& item : items) {
      std::pair<std::int64_t, std::int64_t>* best = nullptr;
      for (auto& filled : expected) {
        const bool fits = filled.first + item.num_rows <= capacity.rows &&
                          filled.second + item.labels <= capacity.labels[0];
        if (fits && (best == nullptr || filled.first > best->first)) best = &filled;
      }
      if (best == nullptr) best = &expected.emplace_back();
      best->first += item.num_rows;
      best->second += item.labels;
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> filled;
    for (const MicroBatchPlan& plan : fill_micro_batches(items, capacity))
      filled.emplace_back(plan.num_rows, plan.labels);
    EXPECT_EQ(filled, expected);
  }
}

TEST(FillMicroBatches, ChecksThatSequencesWerePlannedFor) {
  const auto sequences = sequences_of({5, 5, 5});
  batch::Capacity capacity = kCapacity;
  capacity.sequences = 2;
  EXPECT_THROW(fill_micro_batches(cut_items({}, sequences, Layout::Unpadded, 20), capacity),
               base::InternalError);
}

TEST(FillMicroBatches, GivesPaddedSequencesRowsForTheLongest) {
  const auto sequences = sequences_of({3, 9, 5});
  const auto plans = fill_micro_batches(cut_items({}, sequences, Layout::Padded, 10), kCapacity);
  EXPECT_THAT(lengths_in(plans), ElementsAre(ElementsAre(3, 9), ElementsAre(5)));
  EXPECT_EQ(plans[0].sequences[1].start, 10);
  EXPECT_EQ(plans[0].num_rows, 20);
  EXPECT_EQ(plans[1].num_rows, 10);
}

TEST(FillMicroBatches, KeepsPacksTogether) {
  const auto sequences = sequences_of({6, 4, 5, 3, 9});
  const GlobalBatch batch{.sequence_ids = {0, 1, 2, 3, 4}, .pack_starts = {0, 2, 4, 5}};
  const auto plans = fill_micro_batches(cut_items(batch, sequences, Layout::Packed, 10), kCapacity);
  EXPECT_THAT(lengths_in(plans), ElementsAre(ElementsAre(6, 4, 5, 3), ElementsAre(9)));
  EXPECT_EQ(plans[0].sequences[1].start, 6);
  EXPECT_EQ(plans[0].sequences[2].start, 10);
  EXPECT_EQ(plans[0].num_rows, 20);
}

TEST(FillMicroBatches, MakesNoneOfNothing) {
  EXPECT_TRUE(fill_micro_batches({}, kCapacity).empty());
}

void expect_groups(const batch::GroupedRows& groups, const batch::MicroBatch& batch,
                   const std::vector<std::int32_t>& entry_of_row) {
  ASSERT_EQ(groups.starts.size(), groups.entries.size() + 1);
  EXPECT_EQ(std::adjacent_find(groups.entries.begin(), groups.entries.end(), std::greater_equal<>()),
            groups.entries.end());
  std::set<std::int32_t> rows;
  for (std::size_t g = 0; g < groups.entries.size(); ++g) {
    EXPECT_LT(groups.starts[g], groups.starts[g + 1]);
    for (std::int32_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
      const std::int32_t row = groups.rows[static_cast<std::size_t>(i)];
      EXPECT_EQ(entry_of_row[static_cast<std::size_t>(row)], groups.entries[g]);
      EXPECT_TRUE(i == groups.starts[g] || groups.rows[static_cast<std::size_t>(i) - 1] < row);
      rows.insert(row);
    }
  }
  std::set<std::int32_t> expected;
  for (std::size_t s = 0; s < batch.starts.size(); ++s) {
    for (std::int32_t i = 0; i < batch.lengths[s]; ++i) expected.insert(batch.starts[s] + i);
  }
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(groups.rows.size(), expected.size());
}

TEST(BuildMicroBatch, GroupsTheRowsOfSequencesByWhatTheyRead) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 32), /*has_next_sentence=*/true);
  const MicroBatchPlan plan{.num_rows = 100,
                            .labels = 0,
                            .sequences = {{.id = 5, .start = 0, .length = sequences.length(5)},
                                          {.id = 90, .start = 32, .length = sequences.length(90)},
                                          {.id = 40, .start = 64, .length = sequences.length(40)}}};
  const Masking masking({}, sequences.vocabulary(), 1, 0);
  const batch::MicroBatch batch = build_micro_batch(plan, sequences, masking, MicroBatchUse::Training);
  expect_groups(batch.by_word, batch, batch.ids);
  expect_groups(batch.by_position, batch, batch.positions);
  expect_groups(batch.by_segment, batch, batch.segments);
  EXPECT_THAT(batch.by_segment.entries, ElementsAre(0, 1));
  EXPECT_THAT(batch.samples, ElementsAre(5, 90, 40));
  ASSERT_EQ(batch.objectives[1].labels.size(), 3U);
  for (std::size_t s = 0; s < 3; ++s) {
    const auto sample = static_cast<std::uint64_t>(batch.samples[s]);
    EXPECT_EQ(batch.objectives[1].labels[s], sequences.is_random_next(sample) ? 1 : 0);
  }

  const batch::MicroBatch evaluated = build_micro_batch(plan, sequences, masking, MicroBatchUse::Evaluation);
  EXPECT_EQ(evaluated.ids, batch.ids);
  EXPECT_EQ(evaluated.objectives[0].rows, batch.objectives[0].rows);
  EXPECT_TRUE(evaluated.by_word.starts.empty());
}

TEST(BuildMicroBatch, RestoresTheTextWhereLabelsStand) {
  const test::SyntheticSequences sequences = synthetic(random_lengths(1, 32));
  const MicroBatchPlan plan{.num_rows = 70,
                            .labels = 0,
                            .sequences = {{.id = 80, .start = 0, .length = sequences.length(80)},
                                          {.id = 100, .start = 35, .length = sequences.length(100)}}};
  const Masking masking({}, sequences.vocabulary(), 1, 0);
  batch::MicroBatch batch = build_micro_batch(plan, sequences, masking, MicroBatchUse::Training);
  for (std::size_t m = 0; m < batch.objectives[0].rows.size(); ++m)
    batch.ids[static_cast<std::size_t>(batch.objectives[0].rows[m])] = batch.objectives[0].labels[m];
  for (std::size_t s = 0; s < 2; ++s) {
    std::vector<TokenId> ids;
    std::vector<std::uint8_t> segments;
    sequences.append(plan.sequences[s].id, ids, segments);
    const auto begin = batch.ids.begin() + batch.starts[s];
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), begin, begin + batch.lengths[s]));
  }
  EXPECT_EQ(batch.objectives.size(), 1U);
}

/// Sequences with a token that the vocabulary does not have.
class DamagedSequences final : public SequenceSource {
 public:
  explicit DamagedSequences(const SequenceSource& whole) : whole_(whole) {}

  const packing::LengthHistogram& histogram() const override { return whole_.histogram(); }
  std::int64_t max_length() const override { return whole_.max_length(); }
  const MaskingVocabulary& vocabulary() const override { return whole_.vocabulary(); }
  bool has_next_sentence() const override { return false; }
  std::int64_t length(std::uint64_t id) const override { return whole_.length(id); }
  void append(std::uint64_t id, std::vector<TokenId>& tokens,
              std::vector<std::uint8_t>& segments) const override {
    whole_.append(id, tokens, segments);
    if (id == 7) tokens[1] = kTestVocabulary;
    if (id == 8) segments.back() = 1;
  }
  bool is_random_next(std::uint64_t) const override { return false; }
  std::string name() const override { return "some dataset"; }

 private:
  const SequenceSource& whole_;
};

TEST(BuildMicroBatch, NamesTheSequenceThatNoModelCouldRead) {
  const test::SyntheticSequences whole = synthetic(random_lengths(1, 32));
  const DamagedSequences sequences(whole);
  const Masking masking({}, sequences.vocabulary(), 1, 0);
  for (const auto& [id, damage] : {std::pair{7, "sequence 7 has token 101"}, {8, "sequence 8 is a pair"}}) {
    const auto sequence = static_cast<std::uint64_t>(id);
    const MicroBatchPlan plan{
        .num_rows = 64,
        .labels = 0,
        .sequences = {{.id = sequence, .start = 0, .length = sequences.length(sequence)}}};
    const std::string error =
        test::user_error_of([&] { build_micro_batch(plan, sequences, masking, MicroBatchUse::Training); });
    EXPECT_THAT(error, HasSubstr("some dataset is damaged: " + std::string(damage)));
  }
}

}  // namespace
}  // namespace plenum::data
