#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "plenum/kernels/rows.h"

#include "tests/ops/op_device.h"
#include "tests/support/on_gpu.h"

namespace plenum::ops {
namespace {

// In a process of its own: none can use the GPU after that.
using FailedKernelDeathTest = test::OnGpu<>;
using FailedKernel = test::OnGpu<>;

/// Lets a kernel read memory that is not there, and ends with what is said about it.
[[noreturn]] void wait_for_a_failed_kernel() {
  constexpr std::uintptr_t kNowhere = 1 << 12;
  const OpContext context(tensor::Device::Cuda);
  Arguments arguments(context);
  TestTensor<float> y({1, 8});
  kernels::gather_rows_forward(
      context.stream(),
      {.x_TD = tensor::ConstTensorView(reinterpret_cast<const tensor::BFloat16*>(kNowhere), {1, 8}),
       .index_M = arguments.in(TestTensor<std::int32_t>({1}, 0)),
       .y_MD = arguments.out_compute(y)});
  try {
    context.stream().wait();
  } catch (const base::InternalError& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(3);
  }
  std::_Exit(0);
}

TEST_F(FailedKernelDeathTest, IsToldInOneLineByWhoeverWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      wait_for_a_failed_kernel(), testing::ExitedWithCode(3),
      "cuda_stream.cpp:[0-9]+: the GPU failed to finish a stream's work: an illegal memory access was "
      "encountered \\(cudaErrorIllegalAddress\\)$");
}

// For tools/sanitize_cuda alone: compute-sanitizer must see the kernel, and hangs where a test starts a
// process.
TEST_F(FailedKernel, DISABLED_EndsTheProcess) {
  wait_for_a_failed_kernel();
}

}  // namespace
}  // namespace plenum::ops
