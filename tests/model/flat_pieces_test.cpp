#include "plenum/model/flat_pieces.h"

#include <numeric>

#include <gmock/gmock.h>

#include "plenum/base/check.h"

namespace plenum::model {
namespace {

using testing::ElementsAre;

std::vector<float> numbers() {
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// What lies in [begin, end), with the place of each part.
std::vector<float> read(const FlatPieces& pieces, std::int64_t begin, std::int64_t end) {
  std::vector<float> found(static_cast<std::size_t>(end - begin), -1);
  pieces.for_each_in(begin, end, [&](std::size_t first, std::span<float> values) {
    std::copy(values.begin(), values.end(), found.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return found;
}

TEST(FlatPieces, AreReadAcrossTheirBorders) {
  std::vector<float> values = numbers();
  const std::span<float> all(values);
  const FlatPieces pieces({{7, all.subspan(7)}, {0, all.first(4)}, {4, {}}, {4, all.subspan(4, 3)}});
  EXPECT_TRUE(pieces.is_whole(10));
  EXPECT_FALSE(pieces.is_whole(11));
  EXPECT_THAT(read(pieces, 2, 9), ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(read(pieces, 4, 7), ElementsAre(4, 5, 6));
  EXPECT_THAT(read(FlatPieces(all), 2, 5), ElementsAre(2, 3, 4));
}

TEST(FlatPieces, MayLeaveElementsOut) {
  std::vector<float> values = numbers();
  const FlatPieces pieces({{2, std::span(values).subspan(2, 3)}});
  EXPECT_FALSE(pieces.is_whole(10));
  EXPECT_THAT(read(pieces, 0, 6), ElementsAre(-1, -1, 2, 3, 4, -1));
  EXPECT_TRUE(FlatPieces().is_empty());
}

TEST(FlatPieces, DoNotOverlap) {
  std::vector<float> values = numbers();
  const std::span<float> all(values);
  EXPECT_THROW(FlatPieces({{0, all.first(4)}, {3, all.subspan(3)}}), base::InternalError);
}

}  // namespace
}  // namespace plenum::model
