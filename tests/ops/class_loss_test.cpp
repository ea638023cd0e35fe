#include "plenum/kernels/class_loss.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/class_loss.h"

namespace plenum::ops {
namespace {

const TestTensor<double> kHalf_1({1}, 0.5);
const TestTensor<double> kOne_1({1}, 1.0);

const TestTensor<std::int32_t> kLabels_S({5}, {0, 1, 1, 2, 0});

TEST(ClassLossForward, MatchesTheReference) {
  const OpContext context;
  const TestTensor<float> logits_SC = random_tensor({5, 3}, 1, 4);
  TestTensor<float> loss_S({5});
  kernels::class_loss_forward(context.stream(),
                              {.logits_SC = logits_SC.view(), .label_S = kLabels_S.view(), .loss_S = loss_S});
  std::vector<double> expected;
  for (std::size_t row = 0; row < 5; ++row) {
    const std::vector<double> all = logits_SC.doubles();
    expected.push_back(reference::class_loss({all.begin() + 3 * static_cast<std::ptrdiff_t>(row),
                                              all.begin() + 3 * static_cast<std::ptrdiff_t>(row) + 3},
                                             {kLabels_S.values()[row]}));
  }
  expect_near(loss_S, expected, "loss");
}

TEST(ClassLossForward, SurvivesLargeLogitsAndShowsWhatIsNotFinite) {
  const OpContext context;
  const float infinity = std::numeric_limits<float>::infinity();
  const TestTensor<float> logits_SC({4, 2}, {1000, -1000, 1000, -1000, infinity, 0, NAN, 0});
  const TestTensor<std::int32_t> label_S({4}, {0, 1, 1, 1});
  TestTensor<float> loss_S({4});
  kernels::class_loss_forward(context.stream(),
                              {.logits_SC = logits_SC.view(), .label_S = label_S.view(), .loss_S = loss_S});
  EXPECT_EQ(loss_S.values()[0], 0);
  EXPECT_EQ(loss_S.values()[1], 2000);
  EXPECT_FALSE(std::isfinite(loss_S.values()[2]));
  EXPECT_FALSE(std::isfinite(loss_S.values()[3]));
}

TEST(ClassLossBackward, IsTheGradientOfTheReferenceAlsoInPlace) {
  const OpContext context;
  const TestTensor<float> logits_SC = random_tensor({5, 3}, 2, 2);
  const std::vector<double> expected =
      numeric_gradient(logits_SC.doubles(), [](const std::vector<double>& point) {
        return 0.5 * reference::class_loss(point, kLabels_S.values());
      });
  TestTensor<float> dlogits_SC({5, 3}, 9.0F);
  kernels::class_loss_backward(context.stream(), {.logits_SC = logits_SC.view(),
                                                  .label_S = kLabels_S.view(),
                                                  .scale_1 = kHalf_1.view(),
                                                  .dlogits_SC = dlogits_SC});
  expect_near(dlogits_SC, expected, "dlogits", kGradientRelative);
  TestTensor<float> in_place = logits_SC;
  kernels::class_loss_backward(context.stream(), {.logits_SC = in_place.view(),
                                                  .label_S = kLabels_S.view(),
                                                  .scale_1 = kHalf_1.view(),
                                                  .dlogits_SC = in_place});
  EXPECT_EQ(in_place, dlogits_SC);
}

TEST(ClassLoss, TakesNoRows) {
  const OpContext context;
  const TestTensor<float> logits_SC({0, 2});
  const TestTensor<std::int32_t> label_S({0});
  TestTensor<float> loss_S({0});
  TestTensor<float> dlogits_SC({0, 2});
  kernels::class_loss_forward(context.stream(),
                              {.logits_SC = logits_SC.view(), .label_S = label_S.view(), .loss_S = loss_S});
  kernels::class_loss_backward(context.stream(), {.logits_SC = logits_SC.view(),
                                                  .label_S = label_S.view(),
                                                  .scale_1 = kOne_1.view(),
                                                  .dlogits_SC = dlogits_SC});
}

TEST(ClassLoss, RefusesLabelsThatAreNoClass) {
  const OpContext context;
  const TestTensor<float> logits_SC({1, 2});
  const TestTensor<std::int32_t> label_S({1}, {2});
  TestTensor<float> loss_S({1});
  EXPECT_THROW(
      kernels::class_loss_forward(
          context.stream(), {.logits_SC = logits_SC.view(), .label_S = label_S.view(), .loss_S = loss_S}),
      base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
