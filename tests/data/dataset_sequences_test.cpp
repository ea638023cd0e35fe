#include "plenum/data/batches/dataset_sequences.h"

#include <cstring>

#include "plenum/data/batches/evaluation_batches.h"

#include "tests/data/batch_fixture.h"
#include "tests/data/prepare_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;

class DatasetSequencesTest : public PrepareTest {
 protected:
  Dataset prepared(Objective objective) {
    PrepareOptions given = options(directory_.write("text.txt", random_text(3, 120)));
    given.sequences.objective = objective;
    given.holdout = 0.2;
    given.overwrite = true;
    prepare_quietly(given);
    return Dataset(given.output);
  }

  static describe::ModelConfig model_for(const Dataset& dataset) {
    describe::ModelConfig model = small_model();
    model.vocabulary = static_cast<std::int64_t>(dataset.description().vocabulary_size);
    return model;
  }
};

TEST_F(DatasetSequencesTest, AreTrainedOnAsTheyWerePrepared) {
  const Dataset dataset = prepared(Objective::WithNextSentence);
  const DatasetSequences sequences(dataset, Split::Train);
  describe::ModelConfig model = model_for(dataset);
  model.has_next_sentence = true;
  TrainingDataOptions options;
  options.global_batch = "1000000";
  options.mask_unit = MaskUnit::Word;
  const StepBatchSource source(sequences, options, model, 2, 1);
  ASSERT_EQ(source.steps_per_epoch(), 1U);
  auto seen = collect(source.make(0));
  ASSERT_EQ(seen.size(), dataset.num_sequences(Split::Train));
  for (auto& [sample, sequence] : seen) {
    const auto id = static_cast<std::uint64_t>(sample);
    for (std::size_t m = 0; m < sequence.labels.size(); ++m)
      sequence.ids[static_cast<std::size_t>(sequence.masked_positions[m])] = sequence.labels[m];
    std::vector<TokenId> ids;
    std::vector<std::uint8_t> segments;
    dataset.append_sequence(Split::Train, id, ids, segments);
    EXPECT_EQ(sequence.ids, ids);
    EXPECT_EQ(sequence.segments, std::vector<std::int32_t>(segments.begin(), segments.end()));
    EXPECT_EQ(sequence.next_sentence, dataset.record(Split::Train, id).is_random_next() ? 1 : 0);
  }
}

TEST_F(DatasetSequencesTest, HaveNoLabelsWithoutTheObjective) {
  const Dataset dataset = prepared(Objective::MaskedLanguageModel);
  const DatasetSequences sequences(dataset, Split::Holdout);
  EXPECT_GT(sequences.histogram().num_sequences(), 0U);
  EXPECT_FALSE(sequences.has_next_sentence());
  EXPECT_THAT(sequences.name(), HasSubstr("(holdout)"));
  EXPECT_TRUE(sequences.vocabulary().continues.back());
}

TEST_F(DatasetSequencesTest, RefuseAnotherVocabulary) {
  const Dataset dataset = prepared(Objective::MaskedLanguageModel);
  std::string reordered = letter_vocabulary();
  std::swap(reordered[reordered.find("\na\n") + 1], reordered[reordered.find("\nb\n") + 1]);
  for (const std::string& text : {letter_vocabulary() + "more\n", reordered}) {
    io::write_file(dataset.directory() + "/vocab.txt", text);
    EXPECT_THAT(test::user_error_of([&] { DatasetSequences(dataset, Split::Train); }),
                HasSubstr("vocab.txt is damaged: its checksum is not the one in dataset.json"));
  }
}

TEST_F(DatasetSequencesTest, RefuseADescriptionOfAnotherVocabulary) {
  const std::string directory = prepared(Objective::MaskedLanguageModel).directory();
  const std::string whole = io::read_file(directory + "/dataset.json");
  for (const auto& [stated, other] :
       {std::pair{"\"vocabulary_size\":59", "\"vocabulary_size\":60"}, {"\"sep_id\":3", "\"sep_id\":7"}}) {
    std::string text = whole;
    ASSERT_NE(text.find(stated), std::string::npos) << stated;
    io::write_file(directory + "/dataset.json", text.replace(text.find(stated), std::strlen(stated), other));
    const Dataset dataset(directory);
    EXPECT_THAT(test::user_error_of([&] { DatasetSequences(dataset, Split::Train); }),
                HasSubstr("vocab.txt is not the vocabulary that dataset.json describes"));
  }
}

TEST_F(DatasetSequencesTest, RefuseRecordsOfOtherLengthsThanTheHistogramHas) {
  const std::string directory = prepared(Objective::MaskedLanguageModel).directory();
  std::string bytes = io::read_file(directory + "/train.sequences");
  // The first record changes places with the last: the shortest sequence with the longest.
  const auto first = bytes.begin() + 48;
  std::swap_ranges(first, first + sizeof(SequenceRecord),
                   bytes.end() - static_cast<std::ptrdiff_t>(sizeof(SequenceRecord)));
  io::write_file(directory + "/train.sequences", bytes);
  const Dataset dataset(directory);
  const DatasetSequences sequences(dataset, Split::Train);
  TrainingDataOptions options;
  options.global_batch = "1000000";
  const StepBatchSource source(sequences, options, model_for(dataset), 1, 1);
  for (const std::string& error : {test::user_error_of([&] { source.make(0); }),
                                   test::user_error_of([&] { EvaluationBatches(sequences, {}); })}) {
    EXPECT_THAT(error, HasSubstr("out (train) is damaged: sequence "));
    EXPECT_THAT(error, HasSubstr("prepare the dataset again"));
  }
}

}  // namespace
}  // namespace plenum::data
