#include <algorithm>
#include <limits>

#include "plenum/base/check.h"
#include "plenum/data/tokenizer/vocabulary_trainer.h"
#include "plenum/io/checksum.h"

namespace plenum::data {
namespace {

constexpr std::size_t kFirstCountCapacity = std::size_t{1} << 12;
constexpr std::size_t kMaxWords = std::numeric_limits<std::uint32_t>::max();

}  // namespace

WordCounter::WordCounter(const NormalizerRules& rules)
    : normalizer_(std::make_unique<const Normalizer>(rules)),
      splitter_(*normalizer_, std::numeric_limits<std::size_t>::max()),
      table_(kFirstCountCapacity) {}

void WordCounter::add(std::string_view text) {
  splitter_.split(text, *this);
}

void WordCounter::merge(WordCounter&& other) {
  base::check(normalizer_->rules() == other.normalizer_->rules(),
              "counters of different rules must not be merged");
  for (const Word& word : other.words_) {
    count_word(std::string_view(other.bytes_).substr(word.begin, word.size), word.hash, word.count);
  }
  other.words_ = {};
  other.bytes_ = {};
  other.table_.assign(kFirstCountCapacity, 0);
  other.total_ = 0;
}

void WordCounter::short_word(const WordKey& key) {
  const std::array<char, WordKey::kMaxBytes> bytes = key.bytes();
  count_word({bytes.data(), key.size()}, key.hash(), 1);
}

void WordCounter::long_word(std::string_view word) {
  count_word(word, io::checksum(word), 1);
}

void WordCounter::count_word(std::string_view word, std::uint64_t hash, std::uint64_t count) {
  total_ += count;
  std::size_t place = hash & (table_.size() - 1);
  while (table_[place] != 0) {
    Word& known = words_[table_[place] - 1];
    if (known.hash == hash && std::string_view(bytes_).substr(known.begin, known.size) == word) {
      known.count += count;
      return;
    }
    place = (place + 1) & (table_.size() - 1);
  }
  base::require(words_.size() < kMaxWords - 1, "too many different words to train a vocabulary: {}",
                words_.size());
  words_.push_back({.hash = hash, .count = count, .begin = bytes_.size(), .size = word.size()});
  bytes_ += word;
  table_[place] = static_cast<std::uint32_t>(words_.size());
  if (2 * words_.size() > table_.size()) grow();
}

void WordCounter::grow() {
  table_.assign(2 * table_.size(), 0);
  for (std::size_t index = 0; index < words_.size(); ++index) {
    std::size_t place = words_[index].hash & (table_.size() - 1);
    while (table_[place] != 0) place = (place + 1) & (table_.size() - 1);
    table_[place] = static_cast<std::uint32_t>(index + 1);
  }
}

std::vector<WordCounter::CountedWord> WordCounter::sorted() const {
  std::vector<CountedWord> list;
  list.reserve(words_.size());
  for (const Word& word : words_) {
    list.push_back({.word = std::string_view(bytes_).substr(word.begin, word.size), .count = word.count});
  }
  std::sort(list.begin(), list.end(),
            [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  return list;
}

}  // namespace plenum::data
