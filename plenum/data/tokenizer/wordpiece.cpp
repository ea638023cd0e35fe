#include "plenum/data/tokenizer/wordpiece.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

constexpr std::size_t kFirstCapacity = std::size_t{1} << 10;
constexpr std::size_t kMaxNodes = std::size_t{1} << 24;  // a label holds the node in 24 bits

}  // namespace

WordPiece::WordPiece(const Vocabulary& vocabulary, std::span<const TokenId> excluded)
    : piece_of_(kContinue + 1, -1) {
  resize(kFirstCapacity);
  for (std::size_t index = 0; index < vocabulary.size(); ++index) {
    const auto id = static_cast<TokenId>(index);
    if (std::find(excluded.begin(), excluded.end(), id) != excluded.end()) continue;
    const std::string_view token = vocabulary.token(id);
    // A "##" alone, and "##x" at the start of a word, never meet a word: '#' is punctuation.
    if (token.starts_with(kContinuingPrefix)) {
      add_piece(kContinue, token.substr(kContinuingPrefix.size()), id);
    } else {
      add_piece(kBegin, token, id);
    }
  }
}

void WordPiece::add_piece(Node root, std::string_view piece, TokenId id) {
  if (piece.empty()) return;
  Node node = root;
  for (const char byte : piece) node = add_edge(node, byte);
  piece_of_[node] = id;
}

WordPiece::Node WordPiece::add_edge(Node node, char byte) {
  const std::uint32_t label = label_of(node, byte);
  const std::size_t place = place_of(label);
  if (edges_[place].label == label) return edges_[place].target;
  const auto target = static_cast<Node>(piece_of_.size());
  base::require(target < kMaxNodes, "the vocabulary is too large: its tokens need more than {} trie nodes",
                kMaxNodes);
  edges_[place] = {.label = label, .target = target};
  piece_of_.push_back(-1);
  if (piece_of_.size() > edges_.size() / 4 * 3) resize(2 * edges_.size());
  return target;
}

void WordPiece::resize(std::size_t capacity) {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(capacity));
  shift_ = 64 - std::countr_zero(capacity);
  for (const Edge& edge : old) {
    if (edge.label != 0) edges_[place_of(edge.label)] = edge;
  }
}

WordPiece::Node WordPiece::next(Node node, char byte) const {
  return edges_[place_of(label_of(node, byte))].target;
}

std::size_t WordPiece::cut(std::string_view word, TokenId* pieces) const {
  std::size_t count = 0;
  std::size_t begin = 0;
  while (begin < word.size()) {
    Node node = begin == 0 ? kBegin : kContinue;
    std::size_t end = begin;
    for (std::size_t at = begin; at < word.size(); ++at) {
      node = next(node, word[at]);
      if (node == kNone) break;
      if (piece_of_[node] >= 0) {
        pieces[count] = piece_of_[node];
        end = at + 1;
      }
    }
    if (end == begin) return 0;
    ++count;
    begin = end;
  }
  return count;
}

}  // namespace plenum::data
