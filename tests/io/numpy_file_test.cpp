#include "plenum/io/numpy_file.h"

#include <cstring>
#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

/// What NumPy's format 1.0 says lies before the numbers, and these.
struct NumpyParts {
  explicit NumpyParts(const std::string& path) {
    const std::string bytes = read_file(path);
    EXPECT_TRUE(bytes.starts_with(std::string_view("\x93NUMPY\x01\x00", 8)));
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes.at(8))) +
                        256 * static_cast<std::size_t>(static_cast<unsigned char>(bytes.at(9)));
    dictionary = bytes.substr(10, length);
    begin = 10 + length;
    numbers.resize((bytes.size() - begin) / sizeof(float));
    std::memcpy(numbers.data(), bytes.data() + begin, bytes.size() - begin);
  }

  std::string dictionary;
  std::size_t begin = 0;
  std::vector<float> numbers;
};

TEST(NumpyFile, HasTheHeaderOfItsRowsAndThenTheirNumbers) {
  const test::TemporaryDirectory directory;
  NumpyFile file(directory / "a.npy", 3);
  file.append(std::vector<float>{1, 2, 3, 4, 5, 6});
  file.append(std::vector<float>{});
  file.append(std::vector<float>{-0.5F, 0, 1e-30F});
  EXPECT_EQ(file.num_rows(), 3u);
  EXPECT_FALSE(std::filesystem::exists(directory / "a.npy")) << "before it is whole";
  file.commit();
  const NumpyParts parts(directory / "a.npy");
  EXPECT_THAT(parts.dictionary,
              testing::StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }"));
  EXPECT_TRUE(parts.dictionary.ends_with('\n'));
  EXPECT_EQ(parts.begin % 64, 0u) << "numbers are aligned";
  EXPECT_EQ(parts.numbers, (std::vector<float>{1, 2, 3, 4, 5, 6, -0.5F, 0, 1e-30F}));
}

TEST(NumpyFile, WritesItsHeaderLastWhenTheNumbersAreLongOnDisk) {
  const test::TemporaryDirectory directory;
  NumpyFile file(directory / "a.npy", 1000);
  const std::vector<float> row(1000, 2.5F);
  for (int i = 0; i < 700; ++i) file.append(row);
  file.commit();
  const NumpyParts parts(directory / "a.npy");
  EXPECT_THAT(parts.dictionary, testing::HasSubstr("'shape': (700, 1000)"));
  EXPECT_EQ(parts.numbers, std::vector<float>(700'000, 2.5F));
}

TEST(NumpyFile, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory directory;
  { NumpyFile(directory / "a.npy", 2).append(std::vector<float>{1, 2}); }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(NumpyFile, RefusesPartsOfRows) {
  const test::TemporaryDirectory directory;
  NumpyFile file(directory / "a.npy", 2);
  EXPECT_THROW(file.append(std::vector<float>{1, 2, 3}), base::InternalError);
}

}  // namespace
}  // namespace plenum::io
