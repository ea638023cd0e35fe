#include "plenum/io/block_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

namespace plenum::io {
namespace {

static_assert(std::endian::native == std::endian::little, "words are little-endian");

constexpr std::size_t kWordBytes = sizeof(std::uint32_t);
constexpr std::size_t kWordsPerCell = 1024;
constexpr std::size_t kCellBytes = kWordsPerCell * kWordBytes;
static_assert(BlockSums::kBlockBytes % kCellBytes == 0);

/// The finaliser of SplitMix64, made odd: so that no product with a number other than zero is zero.
constexpr std::uint64_t odd_number(std::uint64_t index) {
  std::uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return (bits ^ bits >> 31) | 1;
}

/// Cells have other numbers than the words in them.
constexpr std::uint64_t kFirstCell = kWordsPerCell;

constexpr std::array<std::uint64_t, kWordsPerCell> kWordFactors = [] {
  std::array<std::uint64_t, kWordsPerCell> factors{};
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = odd_number(i);
  return factors;
}();

std::uint64_t sum_of_words(const char* bytes, std::size_t num_words, const std::uint64_t* factors) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < num_words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, bytes + i * kWordBytes, kWordBytes);
    sum += factors[i] * word;
  }
  return sum;
}

/// Of bytes that lie in one cell, the first of them in its word `first`.
std::uint64_t sum_in_cell(std::string_view bytes, std::size_t first) {
  const std::uint64_t* const factors = kWordFactors.data() + first;
  const std::size_t num_words = bytes.size() / kWordBytes;
  const std::uint64_t sum = sum_of_words(bytes.data(), num_words, factors);
  const std::string_view rest = bytes.substr(num_words * kWordBytes);
  if (rest.empty()) return sum;
  std::array<char, kWordBytes> last{};  // ends with zeros
  std::ranges::copy(rest, last.begin());
  return sum + sum_of_words(last.data(), 1, factors + num_words);
}

}  // namespace

BlockSums::BlockSums(std::uint64_t file_bytes)
    : file_bytes_(file_bytes), sums_((file_bytes + kBlockBytes - 1) / kBlockBytes) {}

void BlockSums::add(std::uint64_t offset, std::string_view bytes) {
  const std::uint64_t end = offset + bytes.size();
  base::check(offset % kWordBytes == 0 && end <= file_bytes_ && (end % kWordBytes == 0 || end == file_bytes_),
              "a checksum is made of whole words: bytes {} to {} of {}", offset, end, file_bytes_);
  while (!bytes.empty()) {
    const std::size_t first = offset % kCellBytes;
    const std::string_view part = bytes.substr(0, kCellBytes - first);
    const std::uint64_t cell = offset / kCellBytes;
    sums_[offset / kBlockBytes] += sum_in_cell(part, first / kWordBytes) * odd_number(kFirstCell + cell);
    bytes.remove_prefix(part.size());
    offset += part.size();
  }
}

void BlockSums::add(std::span<const std::uint64_t> others) {
  base::check(others.size() == sums_.size(), "checksums of files of different sizes: {} and {} blocks",
              sums_.size(), others.size());
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += others[i];
}

std::string format_block_sum(std::uint64_t sum) {
  return fmt::format("sum64:{:016x}", sum);
}

BlockSums file_block_sums(const std::string& path) {
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  BlockSums sums(bytes.size());
  sums.add(0, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return sums;
}

}  // namespace plenum::io
