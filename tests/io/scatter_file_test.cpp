#include "plenum/io/scatter_file.h"

#include <algorithm>
#include <cerrno>
#include <random>

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

TEST(ScatterFile, SortsStably) {
  const test::TemporaryDirectory directory;
  std::mt19937 random(3);
  for (const std::size_t num_buckets : {1, 7, 5000}) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> records;  // bucket, order of arrival
    std::vector<std::uint64_t> counts(num_buckets);
    for (std::uint32_t i = 0; i < 40'000; ++i) {
      const auto bucket = static_cast<std::uint32_t>(random() % num_buckets);
      records.emplace_back(bucket, i);
      ++counts[bucket];
    }
    ScatterFile file(directory / "sorted", "head", sizeof records[0], counts);
    for (const auto& record : records) {
      file.append(record.first, std::string_view(reinterpret_cast<const char*>(&record), sizeof record));
    }
    file.flush();
    file.finish("tail");
    std::stable_sort(records.begin(), records.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::string expected(reinterpret_cast<const char*>(records.data()),
                               records.size() * sizeof records[0]);
    ASSERT_TRUE(read_file(directory / "sorted") == "tail" + expected) << num_buckets;
  }
}

TEST(ScatterFile, RefusesABucketThatIsTooFullOrNotFull) {
  const test::TemporaryDirectory directory;
  ScatterFile file(directory / "sorted", "", 1, {1, 1});
  file.append(0, "a");
  EXPECT_THROW(file.flush(), base::InternalError);
  ScatterFile other(directory / "other", "", 1, {1});
  EXPECT_THROW(
      {
        other.append(0, "a");
        other.append(0, "b");
        other.flush();
      },
      base::InternalError);
}

TEST(ScatterFile, SaysWhyItCannotBeSynced) {
  ScatterFile device("/dev/null", "", 1, {});
  errno = 0;
  test::expect_user_error([&] { device.finish(""); }, "cannot write /dev/null: Invalid argument");
}

}  // namespace
}  // namespace plenum::io
