#include "plenum/tensor/memory_layout.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/stream.h"

namespace plenum::tensor {
namespace {

TEST(MemoryLayout, GivesBlocksThatDoNotOverlapUnlessRewound) {
  MemoryLayout layout;
  const Block kept = layout.add("kept", DType::Float32, {3, 5});
  const std::size_t mark = layout.mark();
  const Block early = layout.add("early", DType::Byte, {1});
  layout.rewind(mark);
  const Block late = layout.add("late", DType::Int64, {100});
  EXPECT_EQ(kept.offset, 0U);
  EXPECT_EQ(early.offset, 256U);
  EXPECT_EQ(late.offset, early.offset);
  EXPECT_EQ(layout.num_bytes(), 256U + 1024U);
  ASSERT_EQ(layout.lines().size(), 3U);
  EXPECT_EQ(layout.lines()[2].bytes, 1024U);
}

TEST(MemoryLayout, RefusesWhatHasNoAddresses) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  MemoryLayout layout;
  EXPECT_THROW(layout.add("too large", DType::Float32, {kMany, 128}), base::UserError);
  EXPECT_THROW(layout.add("wraps around", DType::Float32, {kMany, kMany}), base::UserError);
  EXPECT_THROW(layout.add("wraps around to 0", DType::Int64, {kMany, 1 << 12, 1 << 9}), base::UserError);
  EXPECT_EQ(layout.num_bytes(), 0U);
  EXPECT_TRUE(layout.lines().empty());
  for (int i = 0; i < 31; ++i) layout.add("activations", DType::Float32, {kMany});
  EXPECT_THROW(layout.add("activations", DType::Float32, {kMany + 1}), base::UserError);
  EXPECT_EQ(layout.num_bytes(), std::size_t{31} << 42);
  EXPECT_EQ(layout.add("nothing", DType::Float32, {0, 7}).num_bytes(), 0U);
}

TEST(Arena, IsZeroAndHoldsWhatWasPlanned) {
  MemoryLayout layout;
  const Block a = layout.add("values", DType::Float32, {7});
  const Block b = layout.add("values", DType::Int32, {2, 3});
  const Arena arena(layout);
  EXPECT_EQ(arena.num_bytes(), 512U);
  for (const float value : arena.view(a).span<float>()) EXPECT_EQ(value, 0);
  arena.view(a).data<float>()[6] = 1;
  for (const std::int32_t value : arena.view(b).span<std::int32_t>()) EXPECT_EQ(value, 0);
  EXPECT_THROW(arena.view(a).data<double>(), base::InternalError);
  EXPECT_THROW(arena.view({.offset = 500, .dtype = DType::Float32, .shape = {8}}), base::InternalError);
  EXPECT_EQ(arena.view(b).first_rows(1).shape(), (Shape{1, 3}));
  EXPECT_EQ(arena.view(b).rows(1, 1).shape(), (Shape{1, 3}));
  EXPECT_EQ(arena.view(b).rows(1, 1).data<std::int32_t>(), arena.view(b).data<std::int32_t>() + 3);
  EXPECT_THROW(arena.view(b).rows(1, 2), base::InternalError);
}

TEST(Stream, DividesScratchAmongThreads) {
  alignas(64) std::array<std::byte, 300> memory{};
  base::ThreadPool pool(2);
  const Stream stream(pool, memory);
  EXPECT_EQ(stream.scratch_bytes(), 128U);
  EXPECT_EQ(stream.scratch(1).data(), memory.data() + 128);
}

}  // namespace
}  // namespace plenum::tensor
