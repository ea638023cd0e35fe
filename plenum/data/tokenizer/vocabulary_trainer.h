#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/base/progress.h"
#include "plenum/data/tokenizer/normalizer.h"
#include "plenum/data/tokenizer/vocabulary.h"
#include "plenum/data/tokenizer/word_splitter.h"

namespace plenum::data {

/// Counts the words of a corpus after normalisation and splitting. One per thread, merged at the end. Nothing
/// is dropped, so memory grows with the number of different words: about 45 bytes and its length for each,
/// once per thread until merged. For a corpus with more different words than memory holds, count a sample.
class WordCounter {
 public:
  explicit WordCounter(const NormalizerRules& rules);

  /// Counts the words of `text`. Special tokens in it are text like any other, as in Hugging Face's training.
  void add(std::string_view text);
  /// Adds the counts of `other`, which is empty afterwards.
  void merge(WordCounter&& other);

  std::size_t num_words() const { return words_.size(); }
  std::uint64_t total() const { return total_; }

  struct CountedWord {
    std::string_view word;
    std::uint64_t count;
  };
  /// All words, in the order of their bytes. The views end with the counter's next change.
  std::vector<CountedWord> sorted() const;

 private:
  friend class WordSplitter;

  struct Word {
    std::uint64_t hash;
    std::uint64_t count;
    std::size_t begin;  ///< in bytes_
    std::size_t size;
  };

  // What the splitter calls.
  void short_word(const WordKey& key);
  void long_word(std::string_view word);
  void oversized_word() {}

  void count_word(std::string_view word, std::uint64_t hash, std::uint64_t count);
  void grow();

  std::unique_ptr<const Normalizer> normalizer_;
  WordSplitter splitter_;
  std::vector<Word> words_;
  std::string bytes_;                 ///< all words end to end
  std::vector<std::uint32_t> table_;  ///< open addressing: 0 is empty, else the word's index + 1
  std::uint64_t total_ = 0;
};

/// The options of Hugging Face's WordPieceTrainer, with the defaults of BertWordPieceTokenizer.train but for
/// min_frequency, which is WordPieceTrainer's.
struct TrainVocabularyOptions {
  std::int64_t vocabulary_size = 30000;
  std::int64_t min_frequency = 0;      ///< pairs that occur less often are not merged
  std::int64_t limit_alphabet = 1000;  ///< the most frequent characters kept; others become unknown
  /// The `##` characters in the order of their ids, by which equal counts are decided; those not named follow
  /// by code point. Hugging Face numbers them by the state of a hash table, anew in each run: with the order
  /// that a run of it used, the vocabulary is the same as its.
  std::vector<std::string> continuing_order = {};
};

/// Trains a vocabulary: special tokens, the alphabet by code point, its `##` forms, then merges of the most
/// frequent pair of neighbours (byte-pair encoding, which is what Hugging Face's WordPieceTrainer does) until
/// the size is reached or no pair is left. Of equally frequent pairs the one with the lower ids is merged.
/// The same counts give the same vocabulary. Throws UserError when the size cannot hold the alphabet, and
/// when every word is longer than a tokenizer reads.
Vocabulary train_vocabulary(const WordCounter& words, const TrainVocabularyOptions& options,
                            base::Progress& progress);

}  // namespace plenum::data
