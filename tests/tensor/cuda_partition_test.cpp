#include "plenum/tensor/cuda_partition.h"

#include <memory>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/tensor/cuda_device.h"
#include "plenum/tensor/cuda_graph.h"
#include "plenum/tensor/cuda_memory.h"

#include "tests/support/on_gpu.h"

namespace plenum::tensor {
namespace {

using CudaPartitionOnGpu = test::OnGpu<>;
using testing::Each;
using testing::ElementsAre;

/// Numbers in the GPU's memory.
class Numbers {
 public:
  Numbers(const CudaStream& stream, std::vector<double> values)
      : stream_(stream),
        values_(std::move(values)),
        memory_(allocate_cuda(values_.size() * sizeof(double)), &free_cuda) {
    copy_cuda(stream_, values_.data(), data(), num_bytes());
  }
  std::byte* data() const { return memory_.get(); }
  std::span<std::byte> bytes() const { return {data(), num_bytes()}; }
  std::vector<double> read() {
    copy_cuda(stream_, data(), values_.data(), num_bytes());
    stream_.wait();
    return values_;
  }

 private:
  std::size_t num_bytes() const { return values_.size() * sizeof(double); }

  const CudaStream& stream_;
  std::vector<double> values_;
  std::unique_ptr<std::byte, decltype(&free_cuda)> memory_;
};

TEST_F(CudaPartitionOnGpu, DividesTheMultiprocessorsEvenly) {
  const int whole = cuda_device_info().num_multiprocessors;
  for (const std::size_t count : {2, 4}) {
    const auto parts = CudaPartition::split(count);
    ASSERT_EQ(parts.size(), count);
    int sum = 0;
    for (const auto& part : parts) {
      EXPECT_EQ(part->num_multiprocessors(), parts.front()->num_multiprocessors());
      sum += part->num_multiprocessors();
    }
    EXPECT_LE(sum, whole);
    EXPECT_GT(sum, whole / 2);
  }
}

TEST_F(CudaPartitionOnGpu, HasStreamsThatSumAndCopyAndWaitForOneAnother) {
  const auto parts = CudaPartition::split(2);
  const CudaStream first(parts[0]), second(parts[1]);
  EXPECT_EQ(first.num_multiprocessors(), parts[0]->num_multiprocessors());
  constexpr std::size_t kCount = 100'003;
  Numbers a(first, std::vector<double>(kCount, 1.5)), b(second, std::vector<double>(kCount, 2.25));
  const std::unique_ptr<QueueEvent> is_there = second.make_event(WorkQueue::Timed::No);
  second.record(*is_there);
  first.wait_for(*is_there);
  const std::vector<const std::byte*> sources{a.data(), b.data()};
  const std::vector<std::byte*> destinations{a.data(), b.data()};
  first.sum(sources, destinations, kCount, DType::Float64);
  EXPECT_THAT(a.read(), Each(3.75));
  EXPECT_THAT(b.read(), Each(3.75));
  Numbers c(first, std::vector<double>(kCount));
  first.copy(a.bytes(), c.bytes());
  EXPECT_THAT(c.read(), Each(3.75));
}

TEST_F(CudaPartitionOnGpu, RunsWhatItsStreamRecorded) {
  const auto parts = CudaPartition::split(4);
  const CudaStream stream(parts[3]);
  Numbers a(stream, {1, 2, 3}), b(stream, {10, 20, 30});
  const std::vector<const std::byte*> sources{a.data(), b.data()};
  const std::vector<std::byte*> destinations{a.data()};
  const CudaGraph graph(stream, [&] { stream.sum(sources, destinations, 3, DType::Float64); });
  graph.start(stream);
  graph.start(stream);
  EXPECT_THAT(a.read(), ElementsAre(21, 42, 63));
}

TEST_F(CudaPartitionOnGpu, SumsFloatsAndRoundedOnesInTheOrderOfTheirSources) {
  const CudaStream stream;
  // 1 + 2^24 rounds to 2^24 in fp32, 2^24 - 2^24 + 1 does not.
  Numbers room(stream, std::vector<double>(8));
  std::vector<float> values{16777216.0F, -16777216.0F, 1.0F, 0.0F};
  copy_cuda(stream, values.data(), room.data(), values.size() * sizeof(float));
  std::byte* const at = room.data();
  const std::vector<const std::byte*> sources{at, at + 4, at + 8};
  const std::vector<std::byte*> destinations{at + 12};
  stream.sum(sources, destinations, 1, DType::Float32);
  copy_cuda(stream, room.data(), values.data(), values.size() * sizeof(float));
  stream.wait();
  EXPECT_EQ(values[3], 1.0F);
}

}  // namespace
}  // namespace plenum::tensor
