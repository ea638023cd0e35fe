#include "plenum/kernels/zero_all.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

class ZeroAllOn : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(ZeroAll, ZeroAllOn, kDevices, device_of);

// More than the GPU takes in one launch, of sizes from none to more than a launch's blocks have threads.
TEST_P(ZeroAllOn, ZeroesEveryTensorAndNothingElse) {
  const OpContext context(device());
  Arguments arguments(context);
  std::deque<TestTensor<float>> tensors;
  std::vector<tensor::TensorView> views;
  for (std::int64_t i = 0; i < 600; ++i) {
    tensors.emplace_back(tensor::Shape{i % 7 == 0 ? 0 : i, i == 300 ? 400 : 3}, NAN);
    const tensor::TensorView view = arguments.out(tensors.back());
    if (i % 2 == 0) views.push_back(view);
  }
  kernels::zero_all(context.stream(), views);
  arguments.fetch();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto is_right = [&](float value) { return i % 2 == 0 ? value == 0 : std::isnan(value); };
    EXPECT_TRUE(std::ranges::all_of(tensors[i].values(), is_right)) << i;
  }
}

TEST(ZeroAll, RefusesOtherTypes) {
  const OpContext context;
  TestTensor<double> doubles({3});
  const tensor::TensorView view = doubles;
  EXPECT_THROW(kernels::zero_all(context.stream(), std::span(&view, 1)), base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
