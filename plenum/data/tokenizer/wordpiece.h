#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plenum/data/tokenizer/vocabulary.h"

namespace plenum::data {

/// Words of more characters are unknown, unless a tokenizer says otherwise: BERT's own limit.
inline constexpr int kMaxCharsPerWord = 100;

/// Cuts words into the pieces of a vocabulary, greedily: the longest piece that begins the word, then the
/// longest
/// `##` piece that continues it, and so on. A trie over bytes whose edges lie in one hash table.
class WordPiece {
 public:
  /// Tokens whose number is in `excluded` are no pieces (tokens that only stand in text as they are written).
  WordPiece(const Vocabulary& vocabulary, std::span<const TokenId> excluded);

  /// Writes the pieces of `word` to `pieces`, which has room for one per byte, and returns how many. 0 if no
  /// sequence of pieces is found greedily: the whole word is then unknown.
  std::size_t cut(std::string_view word, TokenId* pieces) const;

 private:
  using Node = std::uint32_t;
  static constexpr Node kNone = 0;
  static constexpr Node kBegin = 1;     ///< root of the pieces that begin a word
  static constexpr Node kContinue = 2;  ///< root of the `##` pieces

  struct Edge {
    std::uint32_t label = 0;  ///< source node and byte; 0 is an empty place, since nodes count from 1
    Node target = kNone;
  };

  static std::uint32_t label_of(Node node, char byte) { return node << 8 | static_cast<unsigned char>(byte); }
  /// Where `label` lies, or the empty place where it would.
  std::size_t place_of(std::uint32_t label) const {
    auto place = static_cast<std::size_t>((label * 0x9E3779B97F4A7C15U) >> shift_);
    while (edges_[place].label != label && edges_[place].label != 0)
      place = (place + 1) & (edges_.size() - 1);
    return place;
  }
  Node next(Node node, char byte) const;
  Node add_edge(Node node, char byte);
  void resize(std::size_t capacity);
  void add_piece(Node root, std::string_view piece, TokenId id);

  std::vector<Edge> edges_;  ///< open addressing, a power of two
  int shift_ = 0;
  std::vector<TokenId> piece_of_;  ///< by node; -1 where no piece ends
};

}  // namespace plenum::data
