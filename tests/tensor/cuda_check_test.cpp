#include "plenum/tensor/cuda_check.h"

#include <gmock/gmock.h>

#include "plenum/tensor/device_error.h"

// Only in builds with CUDA; no GPU is needed.

namespace plenum::tensor {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(CheckCuda, TellsTheUserThatAGpuBrokeDown) {
  constexpr auto kContained = static_cast<cudaError_t>(226);
  for (const cudaError_t error : {cudaErrorNoDevice, cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable,
                                  kContained, cudaErrorHardwareStackError, cudaErrorUnknown}) {
    EXPECT_THAT([&] { check_cuda(error, "wait"); },
                ThrowsMessage<DeviceError>(StartsWith("the GPU failed to wait: ")))
        << error;
  }
}

TEST(CheckCuda, TakesWhatAKernelDidForABug) {
  for (const cudaError_t error : {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorAssert,
                                  cudaErrorInvalidValue, cudaErrorMemoryAllocation}) {
    EXPECT_THAT([&] { check_cuda(error, "copy"); },
                ThrowsMessage<base::InternalError>(HasSubstr("the GPU failed to copy: ")))
        << error;
  }
}

TEST(CheckCuda, TellsThePlaceThatNoticedABug) {
  EXPECT_THAT([] { check_cuda(cudaErrorIllegalAddress, "copy"); },
              ThrowsMessage<base::InternalError>(HasSubstr("cuda_check_test.cpp")));
}

TEST(CheckCuda, LetsSuccessPass) {
  EXPECT_NO_THROW(check_cuda(cudaSuccess, "wait"));
}

}  // namespace
}  // namespace plenum::tensor
