#include "plenum/io/block_sums.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

std::string random_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::uint64_t sum_of(std::string_view bytes) {
  BlockSums sums(bytes.size());
  sums.add(0, bytes);
  return sums.values().front();
}

TEST(BlockSums, AreTheSameForPartsInAnyOrderAndByAnybody) {
  const std::string bytes = random_bytes(50'003);
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    for (std::size_t begin = 0; begin < bytes.size();) {
      const std::size_t count = std::min<std::size_t>(4 * (1 + random() % 3000), bytes.size() - begin);
      parts.emplace_back(begin, count);
      begin += count;
    }
    std::shuffle(parts.begin(), parts.end(), random);
    std::array<BlockSums, 3> processes = {BlockSums(bytes.size()), BlockSums(bytes.size()),
                                          BlockSums(bytes.size())};
    for (const auto& [begin, count] : parts)
      processes[random() % processes.size()].add(begin, std::string_view(bytes).substr(begin, count));
    processes[0].add(processes[1].values());
    processes[0].add(processes[2].values());
    EXPECT_EQ(processes[0].values().front(), sum_of(bytes));
  }
}

TEST(BlockSums, NoticeEveryBit) {
  const std::string bytes = random_bytes(9'001);
  std::set<std::uint64_t> seen{sum_of(bytes)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string altered = bytes;
    altered[i] = static_cast<char>(altered[i] ^ 1 << i % 8);
    EXPECT_TRUE(seen.insert(sum_of(altered)).second) << i;
  }
}

TEST(BlockSums, NoticeSignsThatChangeTogetherAndPagesThatChangePlaces) {
  std::string bytes = random_bytes(8'192);
  const std::uint64_t sum = sum_of(bytes);
  for (std::size_t other = 7; other < 4'096; other += 4) {
    std::string altered = bytes;
    altered[3] = static_cast<char>(altered[3] ^ '\x80');
    altered[other] = static_cast<char>(altered[other] ^ '\x80');
    EXPECT_NE(sum_of(altered), sum) << other;
  }
  std::rotate(bytes.begin(), bytes.begin() + 4'096, bytes.end());
  EXPECT_NE(sum_of(bytes), sum);
}

TEST(BlockSums, AreThoseOfTheDocumentedFormula) {
  // One word: 0x04030201 * odd(0) * odd(1024), where odd is SplitMix64's number made odd.
  const auto odd = [](std::uint64_t index) {
    std::uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return (bits ^ (bits >> 31)) | 1;
  };
  EXPECT_EQ(sum_of("\x01\x02\x03\x04"), 0x04030201 * odd(0) * odd(1024));
  EXPECT_EQ(sum_of("\x01\x02"), 0x0201 * odd(0) * odd(1024));
  EXPECT_EQ(format_block_sum(0x1f), "sum64:000000000000001f");
}

TEST(BlockSums, AreOneForEachBlockOfAFile) {
  const test::TemporaryDirectory directory;
  const std::string last = random_bytes(10);
  const std::string path =
      directory.write("a", std::string(2 * BlockSums::kBlockBytes - 4, '\0') + "abcd" + last);
  const BlockSums sums = file_block_sums(path);
  ASSERT_EQ(sums.values().size(), 3U);
  EXPECT_EQ(sums.values()[0], 0U);
  EXPECT_NE(sums.values()[1], 0U);
  BlockSums tail(2 * BlockSums::kBlockBytes + last.size());
  tail.add(2 * BlockSums::kBlockBytes, last);
  EXPECT_EQ(sums.values()[2], tail.values()[2]);
  EXPECT_TRUE(file_block_sums(directory.write("empty", "")).values().empty());
}

TEST(BlockSums, RefusePartsOfWords) {
  BlockSums sums(10);
  sums.add(8, "ab");
  EXPECT_THROW(sums.add(2, "abcd"), base::InternalError);
  EXPECT_THROW(sums.add(0, "ab"), base::InternalError);
  EXPECT_THROW(sums.add(8, "abcd"), base::InternalError);
}

}  // namespace
}  // namespace plenum::io
