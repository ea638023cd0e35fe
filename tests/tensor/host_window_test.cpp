#include "plenum/tensor/host_window.h"

#include <vector>

#include <gtest/gtest.h>

#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_layout.h"

#include "tests/support/on_gpu.h"

namespace plenum::tensor {
namespace {

using HostWindowOnGpu = test::OnGpu<>;

TEST_F(HostWindowOnGpu, ReadsWhatItWroteInSeveralPieces) {
  constexpr std::int64_t kCount = 10'000'003;
  const CudaStream queue;
  const Stream stream(queue, {});
  MemoryLayout layout;
  const Block block = layout.add("values", DType::Float32, {kCount});
  const Arena arena(layout, Device::Cuda);
  const HostWindow window(stream);
  const std::span<float> values = arena.view(block).span<float>();
  window.write(values, [](std::size_t first, std::span<float> piece) {
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<float>(first + i);
  });
  std::vector<float> read;
  std::size_t num_pieces = 0;
  window.read(values, [&](std::span<const float> piece) {
    read.insert(read.end(), piece.begin(), piece.end());
    ++num_pieces;
  });
  EXPECT_GT(num_pieces, 1U);
  ASSERT_EQ(read.size(), values.size());
  for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], static_cast<float>(i));
}

}  // namespace
}  // namespace plenum::tensor
