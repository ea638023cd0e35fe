#include "plenum/data/tokenizer/vocabulary_trainer.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "plenum/base/check.h"
#include "plenum/data/text/utf8.h"
#include "plenum/data/tokenizer/wordpiece.h"
#include "plenum/trace/printable.h"

namespace plenum::data {
namespace {

using CountedWord = WordCounter::CountedWord;
using WordIndex = std::uint32_t;

/// Two neighbouring tokens, ordered by the first id, then the second.
using Pair = std::uint64_t;

constexpr Pair pair_of(TokenId first, TokenId second) {
  return static_cast<Pair>(first) << 32 | static_cast<std::uint32_t>(second);
}
constexpr TokenId first_of(Pair pair) {
  return static_cast<TokenId>(pair >> 32);
}
constexpr TokenId second_of(Pair pair) {
  return static_cast<TokenId>(pair & 0xFFFFFFFF);
}

template <typename Visit>
void for_each_character(std::string_view word, Visit&& visit) {
  const char* at = word.data();
  const char* const end = at + word.size();
  while (at != end) {
    const DecodedCharacter character = decode_utf8(at, end);
    visit(character.code_point, std::string_view(at, character.length));
    at += character.length;
  }
}

/// The tokens found so far.
class TokenTable {
 public:
  std::size_t size() const { return tokens_.size(); }
  const std::string& token(TokenId id) const { return tokens_[static_cast<std::size_t>(id)]; }
  /// The id of `token`, which is added if it is new.
  TokenId add(const std::string& token) {
    const auto [place, inserted] = ids_.emplace(token, static_cast<TokenId>(tokens_.size()));
    if (inserted) tokens_.push_back(token);
    return place->second;
  }
  std::vector<std::string> release() { return std::move(tokens_); }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId> ids_;
};

/// A corpus as words of tokens, in which pairs are merged in place.
class Corpus {
 public:
  /// Tokens of a word lie at tokens_[begin .. begin + size).
  void add(const std::vector<TokenId>& tokens, std::uint64_t count) {
    words_.push_back(
        {tokens_.size(), static_cast<std::uint32_t>(tokens.size()), static_cast<std::int64_t>(count)});
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  std::size_t num_words() const { return words_.size(); }
  std::int64_t count(WordIndex word) const { return words_[word].count; }

  template <typename Visit>
  void for_each_pair(WordIndex word, Visit&& visit) const {
    const TokenId* tokens = tokens_.data() + words_[word].begin;
    for (std::uint32_t i = 1; i < words_[word].size; ++i) visit(pair_of(tokens[i - 1], tokens[i]));
  }

  /// Replaces each `pair` in a word by `merged`, from left to right, and calls `change(pair, +1 or -1)` for
  /// the neighbours that come and go. The merged pair itself is not reported.
  template <typename Change>
  void merge(WordIndex index, Pair pair, TokenId merged, Change&& change) {
    Word& word = words_[index];
    TokenId* tokens = tokens_.data() + word.begin;
    std::uint32_t size = word.size;
    std::uint32_t written = 0;
    for (std::uint32_t read = 0; read < size; ++read) {
      const bool found = read + 1 < size && pair_of(tokens[read], tokens[read + 1]) == pair;
      if (!found) {
        tokens[written++] = tokens[read];
        continue;
      }
      if (written > 0) {
        change(pair_of(tokens[written - 1], first_of(pair)), -1);
        change(pair_of(tokens[written - 1], merged), +1);
      }
      tokens[written++] = merged;
      ++read;
      if (read + 1 < size) {
        change(pair_of(second_of(pair), tokens[read + 1]), -1);
        change(pair_of(merged, tokens[read + 1]), +1);
      }
    }
    word.size = written;
  }

 private:
  struct Word {
    std::size_t begin;
    std::uint32_t size;
    std::int64_t count;
  };
  std::vector<Word> words_;
  std::vector<TokenId> tokens_;
};

/// The characters kept: the most frequent `limit`, of equally frequent ones those with the lower code point;
/// by code point.
std::vector<char32_t> choose_alphabet(const std::vector<CountedWord>& words, std::int64_t limit) {
  std::map<char32_t, std::uint64_t> counts;
  for (const CountedWord& word : words) {
    for_each_character(word.word,
                       [&](char32_t character, std::string_view) { counts[character] += word.count; });
  }
  std::vector<std::pair<char32_t, std::uint64_t>> kept(counts.begin(), counts.end());
  std::stable_sort(kept.begin(), kept.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (kept.size() > static_cast<std::size_t>(limit)) kept.resize(static_cast<std::size_t>(limit));
  std::vector<char32_t> alphabet(kept.size());
  std::transform(kept.begin(), kept.end(), alphabet.begin(), [](const auto& entry) { return entry.first; });
  std::sort(alphabet.begin(), alphabet.end());
  return alphabet;
}

std::string text_of(char32_t character) {
  char bytes[4];
  return std::string(bytes, encode_utf8(character, bytes));
}

/// Throws UserError if a tokenizer would take every word for unknown because of its length.
void require_words(const std::vector<CountedWord>& words) {
  const auto is_word = [](const CountedWord& counted) {
    int num_characters = 0;
    for_each_character(counted.word, [&](char32_t, std::string_view) { ++num_characters; });
    return num_characters <= kMaxCharsPerWord;
  };
  base::require(std::ranges::any_of(words, is_word),
                "no vocabulary can be trained on this text: every word has more than {} characters, which "
                "makes it unknown; is there no space between words? '{}'",
                kMaxCharsPerWord, trace::excerpt(words.front().word));
}

/// A character's ids at the start of a word and inside it; -1 where it does not occur so.
struct CharacterIds {
  TokenId begins = -1;
  TokenId continues = -1;
};

/// Numbers the alphabet and its `##` forms.
std::unordered_map<char32_t, CharacterIds> number_alphabet(const std::vector<CountedWord>& words,
                                                           const TrainVocabularyOptions& options,
                                                           TokenTable& tokens) {
  const std::vector<char32_t> alphabet = choose_alphabet(words, options.limit_alphabet);
  std::unordered_map<char32_t, CharacterIds> ids;
  for (const char32_t character : alphabet) ids[character].begins = tokens.add(text_of(character));

  std::unordered_map<char32_t, bool> continues;
  for (const CountedWord& word : words) {
    for_each_character(word.word, [&](char32_t character, std::string_view text) {
      if (text.data() != word.word.data()) continues[character] = true;
    });
  }
  const auto number = [&](char32_t character) {
    const auto found = ids.find(character);
    if (found == ids.end() || found->second.continues >= 0 || !continues.contains(character)) return;
    found->second.continues = tokens.add(std::string(kContinuingPrefix) + text_of(character));
  };
  for (const std::string& character : options.continuing_order) {
    number(decode_utf8(character.data(), character.data() + character.size()).code_point);
  }
  for (const char32_t character : alphabet) number(character);
  return ids;
}

/// Characters outside the alphabet are left out; their neighbours move together, as in Hugging Face.
Corpus make_corpus(const std::vector<CountedWord>& words,
                   const std::unordered_map<char32_t, CharacterIds>& ids) {
  Corpus corpus;
  std::vector<TokenId> tokens;
  for (const CountedWord& word : words) {
    tokens.clear();
    for_each_character(word.word, [&](char32_t character, std::string_view text) {
      const auto found = ids.find(character);
      if (found == ids.end()) return;
      tokens.push_back(text.data() == word.word.data() ? found->second.begins : found->second.continues);
    });
    corpus.add(tokens, word.count);
  }
  return corpus;
}

/// Pairs waiting to be merged, with the words in which they were seen.
struct Candidate {
  std::int64_t count;
  Pair pair;
  std::vector<WordIndex> words;

  /// Less urgent: seen less often, or as often with higher ids.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

/// Byte-pair merging with the bookkeeping of Hugging Face's trainer: counts of merged pairs stay as they are,
/// and a pair that appears anew waits a second time with its new words only. Where two merges give the same
/// token (ab+c and a+bc) this decides later counts, so it is kept.
class Merger {
 public:
  Merger(Corpus corpus, TokenTable& tokens) : corpus_(std::move(corpus)), tokens_(&tokens) {
    for (WordIndex word = 0; word < corpus_.num_words(); ++word) {
      corpus_.for_each_pair(word, [&](Pair pair) { add_pair(pair, word, corpus_.count(word)); });
    }
    queue_fresh();
  }

  /// Merges the most frequent pair; false if none is left that is frequent enough.
  bool merge_next(std::int64_t min_frequency) {
    while (!queue_.empty()) {
      Candidate top = pop();
      if (const std::int64_t count = counts_[top.pair]; count != top.count) {
        top.count = count;
        if (count > 0) queue_.push(std::move(top));
        continue;
      }
      if (top.count < min_frequency) return false;
      apply(top);
      return true;
    }
    return false;
  }

 private:
  Candidate pop() {
    Candidate top = std::move(const_cast<Candidate&>(queue_.top()));  // its words are not part of the order
    queue_.pop();
    return top;
  }

  void apply(const Candidate& candidate) {
    std::string_view rest = tokens_->token(second_of(candidate.pair));
    if (rest.starts_with(kContinuingPrefix)) rest.remove_prefix(kContinuingPrefix.size());
    const TokenId merged = tokens_->add(tokens_->token(first_of(candidate.pair)) + std::string(rest));
    for (const WordIndex word : candidate.words) {
      const std::int64_t count = corpus_.count(word);
      corpus_.merge(word, candidate.pair, merged, [&](Pair pair, int change) {
        if (change > 0) {
          add_pair(pair, word, count);
        } else {
          counts_[pair] -= count;
        }
      });
    }
    queue_fresh();
  }

  void add_pair(Pair pair, WordIndex word, std::int64_t count) {
    counts_[pair] += count;
    std::vector<WordIndex>& words = fresh_[pair];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void queue_fresh() {
    for (auto& [pair, words] : fresh_) {
      if (const std::int64_t count = counts_[pair]; count > 0) queue_.push({count, pair, std::move(words)});
    }
    fresh_.clear();
  }

  Corpus corpus_;
  TokenTable* tokens_;
  std::unordered_map<Pair, std::int64_t> counts_;
  std::unordered_map<Pair, std::vector<WordIndex>> fresh_;  ///< pairs that came up since the last merge
  std::priority_queue<Candidate> queue_;
};

}  // namespace

Vocabulary train_vocabulary(const WordCounter& counter, const TrainVocabularyOptions& options,
                            base::Progress& progress) {
  base::require(counter.num_words() > 0, "the text holds no words to train a vocabulary on");
  base::require(options.vocabulary_size > 0, "the size of a vocabulary must be at least 1: {}",
                options.vocabulary_size);
  base::require(options.limit_alphabet > 0, "the limit of the alphabet must be at least 1: {}",
                options.limit_alphabet);
  const auto size = static_cast<std::size_t>(options.vocabulary_size);
  TokenTable tokens;
  for (const std::string_view special : kSpecialTokens) tokens.add(std::string(special));
  const std::vector<CountedWord> words = counter.sorted();
  require_words(words);
  const auto alphabet = number_alphabet(words, options, tokens);
  base::require(
      tokens.size() <= size,
      "a vocabulary of {} tokens is too small: the characters of the text and the special tokens alone are "
      "{}; ask for more",
      size, tokens.size());

  progress.begin("Training the vocabulary", "tokens", size);
  Merger merger(make_corpus(words, alphabet), tokens);
  while (tokens.size() < size && merger.merge_next(std::max<std::int64_t>(options.min_frequency, 1))) {
    progress.advance_to(tokens.size());
  }
  progress.end();
  return Vocabulary(tokens.release(), "the trained vocabulary");
}

}  // namespace plenum::data
