#include <gtest/gtest.h>

#include "plenum/tensor/memory_layout.h"

namespace plenum::tensor {
namespace {

constexpr std::size_t kPage = 4096;

/// Three blocks, of which the last shares its place with a fourth.
MemoryLayout layout_of(std::int64_t rows) {
  MemoryLayout layout;
  layout.add("first", DType::Byte, {rows, 1024});
  layout.add("second", DType::Byte, {10'000});
  const std::size_t mark = layout.mark();
  layout.add("third", DType::Byte, {rows, 512});
  layout.rewind(mark);
  layout.add("fourth", DType::Byte, {rows, 256});
  return layout;
}

TEST(TouchedBytes, AreAllWhereEveryBlockIsFull) {
  const MemoryLayout planned = layout_of(100);
  EXPECT_EQ(touched_bytes(planned, planned, kPage), planned.num_bytes());
}

TEST(TouchedBytes, LeaveOutWholePagesBetweenBlocks) {
  const MemoryLayout planned = layout_of(100);
  const MemoryLayout used = layout_of(10);
  // Each page by itself: whether a byte of it lies in the part of a block that is used.
  std::size_t pages = 0;
  for (std::size_t begin = 0; begin < planned.num_bytes(); begin += kPage) {
    bool is_touched = false;
    for (std::size_t i = 0; i < planned.extents().size(); ++i) {
      const std::size_t first = planned.extents()[i].begin;
      is_touched |= first < begin + kPage && begin < first + used.extents()[i].bytes;
    }
    pages += is_touched ? 1 : 0;
  }
  EXPECT_EQ(touched_bytes(planned, used, kPage), pages * kPage);
  EXPECT_LT(pages * kPage, planned.num_bytes() / 2);
}

TEST(TouchedBytes, AreAllOfAnArenaInOnePage) {
  const MemoryLayout planned = layout_of(100);
  EXPECT_EQ(touched_bytes(planned, layout_of(1), std::size_t{1} << 30), planned.num_bytes());
}

}  // namespace
}  // namespace plenum::tensor
