#include "plenum/tensor/cuda_graph.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/tensor/cuda_memory.h"

#include "tests/support/on_gpu.h"

namespace plenum::tensor {
namespace {

using CudaGraphOnGpu = test::OnGpu<>;

constexpr std::byte kUntouched{0x5A};

/// Some memory of the GPU, every byte of it kUntouched.
class Room {
 public:
  Room(const CudaStream& stream, std::size_t num_bytes)
      : stream_(stream), bytes_(num_bytes, kUntouched), memory_(allocate_cuda(num_bytes), &free_cuda) {
    copy_cuda(stream_, bytes_.data(), data(), bytes_.size());
  }
  std::byte* data() const { return memory_.get(); }
  std::vector<std::byte> read() {
    copy_cuda(stream_, data(), bytes_.data(), bytes_.size());
    stream_.wait();
    return bytes_;
  }

 private:
  const CudaStream& stream_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<std::byte, decltype(&free_cuda)> memory_;
};

struct Range {
  std::size_t begin, size;
};
/// Words, a part of a word, what does not begin with a word, and more than kernels are asked to fill.
constexpr Range kFills[] = {{0, 4}, {256, 2048}, {8, 3}, {5, 8}, {512, std::size_t{3} << 20}, {1024, 400000}};

TEST_F(CudaGraphOnGpu, FillsWhatItRecordedAndNothingElse) {
  const CudaStream stream;
  for (const auto& [begin, size] : kFills) {
    Room room(stream, begin + size + 64);
    const CudaGraph graph(stream, [&] { zero_cuda(stream, room.data() + begin, size); });
    EXPECT_EQ(room.read(), std::vector(begin + size + 64, kUntouched)) << "recording is not running";
    graph.start(stream);
    std::vector<std::byte> expected(begin + size + 64, kUntouched);
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(begin), size, std::byte{0});
    EXPECT_EQ(room.read(), expected) << size << " bytes from " << begin;
  }
}

TEST_F(CudaGraphOnGpu, KeepsFillsInTheirOrder) {
  const CudaStream stream;
  Room first(stream, 64), second(stream, 64);
  const CudaGraph graph(stream, [&] {
    copy_cuda(stream, first.data(), second.data(), 32);  // what was there before
    zero_cuda(stream, first.data(), 64);
    zero_cuda(stream, second.data(), 16);
    copy_cuda(stream, first.data(), second.data() + 48, 16);  // what is there now
  });
  EXPECT_EQ(graph.num_nodes(), 4U);
  graph.start(stream);
  std::vector<std::byte> expected(64, std::byte{0});
  std::fill_n(expected.begin() + 16, 32, kUntouched);
  EXPECT_EQ(second.read(), expected);
}

}  // namespace
}  // namespace plenum::tensor
