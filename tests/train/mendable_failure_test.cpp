#include "plenum/train/mendable_failure.h"

#include <gmock/gmock.h>

namespace plenum::train {
namespace {

TEST(MendableFailure, IsTheReasonThatAUserCanMend) {
  EXPECT_EQ(mendable_failure_of([] {}), std::nullopt);
  EXPECT_THAT(mendable_failure_of([] { base::fail("the disk is full"); }),
              testing::Optional(std::string("the disk is full")));
}

TEST(MendableFailure, IsNoGpuThatBrokeDownAndNoBug) {
  EXPECT_THROW(mendable_failure_of([] { throw tensor::DeviceError("the GPU failed to copy"); }),
               tensor::DeviceError);
  EXPECT_THROW(mendable_failure_of([] { base::check(false, "rows must match"); }), base::InternalError);
}

}  // namespace
}  // namespace plenum::train
