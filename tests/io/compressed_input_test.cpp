#include "plenum/io/compressed_input.h"

#include <gtest/gtest.h>

#include "tests/support/compress.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

using test::expect_user_error;
using test::TemporaryDirectory;

std::string sample_text(std::size_t size) {
  std::string text;
  for (unsigned word = 1; text.size() < size; word = word * 1664525 + 1013904223) {
    text += std::to_string(word) + (word % 7 == 0 ? "\n" : " ");
  }
  text.resize(size);
  return text;
}

std::string read_all(const std::string& path, std::size_t step) {
  CompressedInput input(path);
  std::string text;
  std::string chunk(step, '\0');
  while (const std::size_t count = input.read(chunk.data(), chunk.size())) text.append(chunk, 0, count);
  return text;
}

class EveryCompression : public testing::TestWithParam<std::string> {
 protected:
  /// Two members or frames where there is such a thing.
  std::string pack(std::string_view text) const {
    const std::string_view head = text.substr(0, text.size() / 3);
    const std::string_view tail = text.substr(text.size() / 3);
    if (GetParam() == ".gz") return test::gzip(head) + test::gzip(tail);
    if (GetParam() == ".zst") return test::zstd(head) + test::zstd(tail);
    return std::string(text);
  }
  std::string write(std::string_view packed) const { return directory_.write("a.txt" + GetParam(), packed); }

  TemporaryDirectory directory_;
};

TEST_P(EveryCompression, GivesBackTheText) {
  for (const std::size_t size : {0, 1, 1000, 700'000}) {
    const std::string text = sample_text(size);
    const std::string path = write(pack(text));
    for (const std::size_t step : {std::size_t{1000}, std::size_t{65536}, std::size_t{1} << 21}) {
      ASSERT_EQ(read_all(path, step), text) << size << " in steps of " << step;
    }
  }
}

TEST_P(EveryCompression, SkipsToAnyPlace) {
  const std::string text = sample_text(500'000);
  const std::string path = write(pack(text));
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{1}, text.size() / 3, text.size() - 1, text.size()}) {
    CompressedInput input(path);
    input.skip(at);
    std::string rest(text.size(), '\0');
    rest.resize(input.read(rest.data(), rest.size()));
    EXPECT_EQ(rest, text.substr(at));
  }
  CompressedInput input(path);
  expect_user_error([&] { input.skip(text.size() + 1); }, "shorter than it was");
}

TEST_P(EveryCompression, FilePositionEndsAtTheFilesSize) {
  const std::string packed = pack(sample_text(100'000));
  CompressedInput input(write(packed));
  std::string text(200'000, '\0');
  input.read(text.data(), text.size());
  EXPECT_EQ(input.file_position(), packed.size());
}

INSTANTIATE_TEST_SUITE_P(Files, EveryCompression, testing::Values("", ".gz", ".zst"), [](const auto& tested) {
  return tested.param.empty() ? "plain" : tested.param.substr(1);
});

TEST(CompressedInput, RefusesTruncatedDataAtEveryLength) {
  const TemporaryDirectory directory;
  const std::string text = sample_text(300);
  for (const auto& [name, packed] :
       {std::pair{"a.txt.gz", test::gzip(text)}, std::pair{"a.txt.zst", test::zstd(text)}}) {
    for (std::size_t size = 1; size < packed.size(); ++size) {
      const std::string path = directory.write(name, packed.substr(0, size));
      expect_user_error([&] { read_all(path, 4096); }, path + ": the ");
    }
  }
}

TEST(CompressedInput, RefusesDamagedDataAndNamesTheOffset) {
  const TemporaryDirectory directory;
  const std::string text = sample_text(200'000);
  for (const auto& [name, packed] :
       {std::pair{"a.txt.gz", test::gzip(text)}, std::pair{"a.txt.zst", test::zstd(text)}}) {
    std::string damaged = packed;
    for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) damaged[i] ^= 0x55;
    const std::string path = directory.write(name, damaged);
    EXPECT_THROW(EXPECT_NE(read_all(path, 4096), text), base::UserError) << name;
    const std::string garbage = directory.write(name, "this is no compressed file at all");
    expect_user_error([&] { read_all(garbage, 4096); }, "damaged at byte");
  }
}

TEST(CompressedInput, RefusesGarbageBehindAMember) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("a.txt.gz", test::gzip("text") + "garbage");
  expect_user_error([&] { read_all(path, 4096); }, "damaged at byte");
}

TEST(CompressedInput, RefusesWhatIsNoFile) {
  const TemporaryDirectory directory;
  expect_user_error([&] { CompressedInput input(directory / "missing.txt"); }, "cannot open");
  expect_user_error([&] { CompressedInput input(directory.path()); }, "it is a directory");
}

}  // namespace
}  // namespace plenum::io
