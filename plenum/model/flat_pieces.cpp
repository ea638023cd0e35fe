#include "plenum/model/flat_pieces.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::model {
namespace {

std::int64_t end_of(const FlatPiece& piece) {
  return piece.begin + static_cast<std::int64_t>(piece.values.size());
}

}  // namespace

void add_within(std::int64_t begin, std::int64_t end, const FlatPiece& piece,
                std::vector<FlatPiece>& pieces) {
  const std::int64_t from = std::max(begin, piece.begin);
  const std::int64_t to = std::min(end, end_of(piece));
  if (from >= to) return;
  pieces.push_back({from, piece.values.subspan(static_cast<std::size_t>(from - piece.begin),
                                               static_cast<std::size_t>(to - from))});
}

FlatPieces::FlatPieces(std::vector<FlatPiece> pieces) : pieces_(std::move(pieces)) {
  std::erase_if(pieces_, [](const FlatPiece& piece) { return piece.values.empty(); });
  std::ranges::sort(pieces_, {}, &FlatPiece::begin);
  for (std::size_t i = 1; i < pieces_.size(); ++i) {
    base::check(end_of(pieces_[i - 1]) <= pieces_[i].begin, "pieces of a flat buffer overlap at element {}",
                pieces_[i].begin);
  }
}

bool FlatPieces::is_whole(std::int64_t num_elements) const {
  std::int64_t end = 0;
  for (const FlatPiece& piece : pieces_) {
    if (piece.begin != end) return false;
    end = end_of(piece);
  }
  return end == num_elements;
}

void FlatPieces::for_each_in(std::int64_t begin, std::int64_t end,
                             base::FunctionRef<void(std::size_t, std::span<float>)> visit) const {
  const auto first = std::ranges::partition_point(
      pieces_, [begin](const FlatPiece& piece) { return end_of(piece) <= begin; });
  for (auto piece = first; piece != pieces_.end() && piece->begin < end; ++piece) {
    const std::int64_t from = std::max(begin, piece->begin);
    const std::int64_t to = std::min(end, end_of(*piece));
    visit(static_cast<std::size_t>(from - begin),
          piece->values.subspan(static_cast<std::size_t>(from - piece->begin),
                                static_cast<std::size_t>(to - from)));
  }
}

}  // namespace plenum::model
