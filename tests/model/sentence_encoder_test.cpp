// Sentence vectors against sentence-transformers' pooling of Hugging Face's BertModel, from a golden file.

#include "plenum/model/sentence_encoder.h"

#include <gtest/gtest.h>

#include "plenum/io/safetensors.h"

#include "tests/ops/op_testing.h"
#include "tests/support/bert_golden.h"
#include "tests/support/bfloat16_band.h"
#include "tests/support/on_gpu.h"
#include "tests/support/wide_heads.h"

namespace plenum::model {
namespace {

using kernels::UnitLength;
using test::BertGolden;

constexpr double kVectorParity = 1e-5;

enum class RowsPooled { All, First };

/// Which rows of sequences make up their vectors.
batch::MicroBatch to_pool(batch::MicroBatch batch, RowsPooled pooled) {
  batch::ObjectiveRows rows;
  for (std::size_t s = 0; s < batch.starts.size(); ++s) {
    const std::int32_t count = pooled == RowsPooled::All ? batch.lengths[s] : 1;
    for (std::int32_t i = 0; i < count; ++i) {
      rows.rows.push_back(batch.starts[s] + i);
      rows.labels.push_back(static_cast<std::int32_t>(s));
    }
  }
  batch.objectives = {rows};
  batch.by_word = batch.by_position = batch.by_segment = {};
  return batch;
}

std::vector<double> expected_vectors(const std::string& name) {
  const io::SafetensorsFile file(std::string(PLENUM_SOURCE_DIR) + "/tests/golden/vectors.safetensors");
  const io::SafetensorsTensor* const tensor = file.find(name);
  base::check(tensor != nullptr, "the golden file has no {}", name);
  std::vector<float> values(tensor->num_elements);
  file.read(*tensor, values);
  return {values.begin(), values.end()};
}

TEST(SentenceEncoder, PoolsAsSentenceTransformersDoes) {
  const BertGolden golden;
  for (const std::int64_t row_length : {0, 24}) {  // unpadded, and in rows of one length
    const batch::MicroBatch laid_out = test::lay_out(golden.sequences(), row_length);
    for (const auto& [name, pooled] :
         {std::pair("mean", RowsPooled::All), std::pair("cls", RowsPooled::First)}) {
      const batch::MicroBatch batch = to_pool(laid_out, pooled);
      SentenceEncoder encoder(BertGolden::config(), test::capacity_of(batch), 2);
      encoder.write_weights(
          [&](std::span<float> weights_N) { golden.read_weights(encoder.parameters(), weights_N); });
      encoder.begin(batch);
      ops::expect_near(encoder.finish(), expected_vectors(name), name, kVectorParity);
      encoder.begin(batch, UnitLength::Yes);
      ops::expect_near(encoder.finish(), expected_vectors(std::string(name) + "_normalized"), name,
                       kVectorParity);
    }
  }
}

TEST(SentenceEncoder, GivesTheEarliestOfThoseUnderWay) {
  const BertGolden golden;
  const std::vector<test::TestSequence> sequences = golden.sequences();
  const batch::MicroBatch all = to_pool(test::lay_out(sequences), RowsPooled::All);
  const batch::MicroBatch first = to_pool(test::lay_out(std::span(sequences).first(2)), RowsPooled::All);
  const batch::MicroBatch rest = to_pool(test::lay_out(std::span(sequences).subspan(2)), RowsPooled::All);
  SentenceEncoder encoder(BertGolden::config(), test::capacity_of(all), 1);
  encoder.write_weights(
      [&](std::span<float> weights_N) { golden.read_weights(encoder.parameters(), weights_N); });
  const std::vector<double> expected = expected_vectors("mean");
  const auto width = static_cast<std::size_t>(BertGolden::config().width);
  ASSERT_EQ(SentenceEncoder::most_under_way(), 2u);
  for (int turn = 0; turn < 2; ++turn) {
    encoder.begin(first);
    encoder.begin(rest);
    EXPECT_EQ(encoder.num_under_way(), 2u);
    EXPECT_THROW(encoder.begin(rest), base::InternalError) << "there is no room for a third";
    ops::expect_near(encoder.finish(),
                     {expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(2 * width)},
                     "the first two", kVectorParity);
    ops::expect_near(encoder.finish(),
                     {expected.begin() + static_cast<std::ptrdiff_t>(2 * width), expected.end()}, "the rest",
                     kVectorParity);
  }
  EXPECT_THROW(encoder.finish(), base::InternalError) << "none is under way";
}

TEST(SentenceEncoder, RefusesASequenceWithoutARow) {
  const BertGolden golden;
  batch::MicroBatch batch = to_pool(test::lay_out(golden.sequences()), RowsPooled::First);
  SentenceEncoder encoder(BertGolden::config(), test::capacity_of(batch), 1);
  batch.objectives[0].rows.pop_back();
  batch.objectives[0].labels.pop_back();
  EXPECT_THROW(encoder.begin(batch), base::InternalError);
  batch.objectives[0].rows.push_back(batch.starts.back());
  batch.objectives[0].labels.push_back(5);  // of five sequences
  EXPECT_THROW(encoder.begin(batch), base::InternalError);
}

TEST(SentenceEncoder, HasNoHeadsInItsMemory) {
  const SentenceEncoder encoder(BertGolden::config(),
                                {.rows = 8, .sequences = 2, .labels = {8}, .max_length = 8}, 1);
  for (const describe::Parameter& parameter : encoder.parameters().parameters()) {
    EXPECT_NE(parameter.part, describe::ModelPart::Head) << parameter.name;
  }
}

using SentenceEncoderOnGpu = test::OnGpu<>;

TEST_F(SentenceEncoderOnGpu, GivesTheVectorsOfTheCpu) {
  const auto sequences = test::random_sequences(300, 90, 97, 5);
  for (const RowsPooled pooled : {RowsPooled::All, RowsPooled::First}) {
    const batch::MicroBatch batch = to_pool(test::lay_out(sequences), pooled);
    std::vector<std::vector<float>> vectors;
    for (const tensor::Device device : {tensor::Device::Cpu, tensor::Device::Cuda}) {
      SentenceEncoder encoder(test::wide_heads(), test::capacity_of(batch), 1, device);
      encoder.write_weights([&](std::span<float> weights_N) {
        std::ranges::copy(test::random_weights(encoder.parameters(), test::wide_heads().width),
                          weights_N.begin());
      });
      encoder.begin(batch);
      encoder.begin(batch);
      const std::span<const float> first = encoder.finish();
      vectors.emplace_back(first.begin(), first.end());
      const std::span<const float> second = encoder.finish();
      EXPECT_TRUE(std::ranges::equal(vectors.back(), second));
    }
    EXPECT_LE(test::relative_distance(vectors[1], vectors[0]), test::kBFloat16Logits);
  }
}

}  // namespace
}  // namespace plenum::model
