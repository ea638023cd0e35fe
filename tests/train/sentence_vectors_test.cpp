#include "plenum/train/sentence_vectors.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

using testing::HasSubstr;

/// A trained model of width 16 that takes 32 tokens, and texts for it.
class SentenceVectors : public TrainingTest {
 protected:
  SentenceVectors() { run(options("run", 2)); }

  VectorOptions reading(const std::string& input, const std::string& text) const {
    return {.input = directory_.write(input, text), .output = directory_ / "vectors.npy"};
  }

  /// By rows; the numbers behind a header of 128 bytes.
  std::vector<std::vector<float>> vectors(const VectorOptions& given, std::size_t num_threads = 1) {
    base::SilentProgress silent;
    report_ = write_sentence_vectors(find_model(directory_ / "run", silent), given, num_threads,
                                     tensor::Device::Cpu, silent);
    const std::string bytes = io::read_file(given.output).substr(128);
    std::vector<std::vector<float>> rows(bytes.size() / (kWidth * sizeof(float)), std::vector<float>(kWidth));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(rows[i].data(), bytes.data() + i * kWidth * sizeof(float), kWidth * sizeof(float));
    }
    EXPECT_EQ(report_.num_texts, rows.size());
    EXPECT_EQ(report_.width, static_cast<std::int64_t>(kWidth));
    return rows;
  }

  static void expect_same(const std::vector<std::vector<float>>& actual,
                          const std::vector<std::vector<float>>& expected, double tolerance = 1e-6) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      for (std::size_t j = 0; j < kWidth; ++j) ASSERT_NEAR(actual[i][j], expected[i][j], tolerance) << i;
    }
  }

  static constexpr std::size_t kWidth = 16;
  VectorReport report_;
};

/// Texts of 1 to 11 letters, which are tokens, each text unlike its neighbours.
std::vector<std::string> different_texts(int count) {
  constexpr std::array<const char*, 5> kWords = {"a", "b", "c", "d", "e"};
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string& text = texts.emplace_back();
    for (int word = 0; word <= i * 7 % 11; ++word) {
      text += std::string(text.empty() ? "" : " ") + kWords[static_cast<std::size_t>((i + word * word) % 5)];
    }
  }
  return texts;
}

std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

TEST_F(SentenceVectors, KeepTheOrderOfTextsWhateverTheirLengths) {
  const std::vector<std::string> texts = different_texts(60);
  VectorOptions given = reading("texts.txt", lines_of(texts));
  given.micro_batch_tokens = 64;  // many micro-batches in a window
  const std::vector<std::vector<float>> all = vectors(given, 3);
  ASSERT_EQ(all.size(), texts.size());
  std::uint64_t num_tokens = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    expect_same({all[i]}, vectors(reading("one.txt", texts[i])));
    num_tokens += report_.num_tokens;
  }
  vectors(given);
  EXPECT_EQ(report_.num_tokens, num_tokens);
  EXPECT_EQ(report_.num_truncated, 0u);
}

TEST_F(SentenceVectors, AreTheSameOverWindowsAndThreads) {
  const std::string lines = lines_of(different_texts(3000));
  VectorOptions given = reading("texts.txt", lines);
  const std::vector<std::vector<float>> expected = vectors(given);
  given.micro_batch_tokens = 32;  // a window of some hundred texts
  expect_same(vectors(given, 2), expected);
}

TEST_F(SentenceVectors, AreOfTheSameTextsInEveryFormat) {
  const std::vector<std::vector<float>> expected = vectors(reading("a.txt", "the pack\n\nis full\n"));
  ASSERT_EQ(expected.size(), 3u) << "an empty line is a text, so that line i has row i";
  EXPECT_EQ(report_.num_empty, 1u);
  VectorOptions table = reading("a.tsv", "id\tsentence\n1\tthe pack\n2\t\n3\tis full\n");
  table.text_field = "sentence";
  expect_same(vectors(table), expected);
  VectorOptions quoted = reading("a.csv", "sentence,id\n\"the\npack\",1\n\"\",2\nis full,3\n");
  quoted.text_field = "sentence";
  expect_same(vectors(quoted), expected);
  expect_same(
      vectors(reading("a.jsonl", "{\"text\":\"the pack\"}\n{\"text\":\"\"}\n{\"text\":\"is full\"}\n")),
      expected);
  expect_same(vectors(reading("b.txt", "the pack\r\n\r\nis full")), expected);
}

TEST_F(SentenceVectors, CutLongTextsOffAndCountThem) {
  std::string text = "a";
  for (int i = 0; i < 100; ++i) text += " b";
  VectorOptions given = reading("long.txt", text + "\na b c d\n" + text + " e\n");
  const std::vector<std::vector<float>> all = vectors(given);
  EXPECT_EQ(report_.num_truncated, 2u);
  EXPECT_EQ(report_.max_length, 32);
  EXPECT_EQ(report_.num_tokens, 32u + 6 + 32);
  expect_same({all[2]}, {all[0]});  // what differs is behind the cut
  given.max_length = 4;
  const std::vector<std::vector<float>> cut = vectors(given);
  EXPECT_EQ(report_.num_truncated, 3u);
  expect_same({cut[1]}, vectors(reading("short.txt", "a b")));
  EXPECT_EQ(report_.num_truncated, 0u);
}

TEST_F(SentenceVectors, ComeFromTheMeanOrFromTheFirstTokenAndOfLengthOne) {
  VectorOptions given = reading("a.txt", "the pack is full\nshort\n");
  const std::vector<std::vector<float>> mean = vectors(given);
  given.pooling = Pooling::Cls;
  const std::vector<std::vector<float>> cls = vectors(given);
  double difference = 0;
  for (std::size_t j = 0; j < kWidth; ++j) difference += std::abs(mean[0][j] - cls[0][j]);
  EXPECT_GT(difference, 1e-2);
  given.has_unit_length = true;
  const std::vector<std::vector<float>> units = vectors(given);
  for (std::size_t i = 0; i < units.size(); ++i) {
    double length = 0;
    for (const float value : cls[i]) length += double{value} * double{value};
    for (std::size_t j = 0; j < kWidth; ++j) {
      EXPECT_NEAR(units[i][j], cls[i][j] / std::sqrt(length), 1e-6);
    }
  }
}

TEST_F(SentenceVectors, RefuseWhatCannotBeDone) {
  const auto error = [&](const VectorOptions& given) { return test::user_error_of([&] { vectors(given); }); };
  EXPECT_THAT(error(reading("empty.txt", "")), HasSubstr("has no text"));
  VectorOptions given = reading("a.txt", "the pack\n");
  given.max_length = 33;
  EXPECT_THAT(error(given), HasSubstr("at most what the model takes"));
  given.max_length = 32;
  given.micro_batch_tokens = 31;
  EXPECT_THAT(error(given), HasSubstr("micro-batch-tokens must be at least max-length"));
  EXPECT_THAT(error(reading("a.tsv", "id\n1\n")), HasSubstr("no column is named 'text'"));
  EXPECT_THAT(error(reading("bad.txt", "good\n\xff\n")), HasSubstr("bad.txt:2"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "vectors.npy"));
}

}  // namespace
}  // namespace plenum::train
