#include "plenum/kernels/class_loss.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

const TestTensor<double> kHalf_1({1}, 0.5);
const TestTensor<std::int32_t> kLabels_S({5}, {0, 1, 1, 2, 0});

class ClassLossOn : public OnDevice {
 protected:
  static TestTensor<float> losses(const TestTensor<float>& logits_SC,
                                  const TestTensor<std::int32_t>& label_S) {
    const OpContext context(device());
    Arguments arguments(context);
    TestTensor<float> loss_S(label_S.shape(), 9.0F);
    kernels::class_loss_forward(context.stream(), {.logits_SC = arguments.in_compute(logits_SC),
                                                   .label_S = arguments.in(label_S),
                                                   .loss_S = arguments.out(loss_S)});
    arguments.fetch();
    return loss_S;
  }

  /// Of half the loss.
  static TestTensor<float> gradients(const TestTensor<float>& logits_SC,
                                     const TestTensor<std::int32_t>& label_S) {
    const OpContext context(device());
    Arguments arguments(context);
    TestTensor<float> dlogits_SC(logits_SC.shape(), 9.0F);
    kernels::class_loss_backward(context.stream(), {.logits_SC = arguments.in_compute(logits_SC),
                                                    .label_S = arguments.in(label_S),
                                                    .scale_1 = arguments.in(kHalf_1),
                                                    .dlogits_SC = arguments.out_compute(dlogits_SC)});
    arguments.fetch();
    return dlogits_SC;
  }

  /// The same where the gradients take the logits' place.
  static TestTensor<float> gradients_in_place(TestTensor<float> logits_SC,
                                              const TestTensor<std::int32_t>& label_S) {
    const OpContext context(device());
    Arguments arguments(context);
    const tensor::TensorView place = arguments.out_compute(logits_SC);
    kernels::class_loss_backward(context.stream(), {.logits_SC = place,
                                                    .label_S = arguments.in(label_S),
                                                    .scale_1 = arguments.in(kHalf_1),
                                                    .dlogits_SC = place});
    arguments.fetch();
    return logits_SC;
  }
};
INSTANTIATE_TEST_SUITE_P(ClassLoss, ClassLossOn, kDevices, device_of);

TEST_P(ClassLossOn, ForwardSurvivesLargeLogitsAndShowsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const TestTensor<float> logits_SC({4, 2}, {1000, -1000, 1000, -1000, infinity, 0, NAN, 0});
  const std::vector<float> loss_S = losses(logits_SC, TestTensor<std::int32_t>({4}, {0, 1, 1, 1})).values();
  EXPECT_EQ(loss_S[0], 0);
  EXPECT_EQ(loss_S[1], 2000);
  EXPECT_FALSE(std::isfinite(loss_S[2]));
  EXPECT_FALSE(std::isfinite(loss_S[3]));
}

TEST_P(ClassLossOn, BackwardGivesTheSameInPlace) {
  const TestTensor<float> logits_SC = rounded(random_tensor({5, 3}, 2, 2), device());
  EXPECT_EQ(gradients_in_place(logits_SC, kLabels_S), gradients(logits_SC, kLabels_S));
}

TEST_P(ClassLossOn, RowsWithoutLabelHaveNeitherLossNorGradient) {
  const TestTensor<float> logits_SC = random_tensor({300, 2}, 3, 4);  // more rows than a block takes
  TestTensor<std::int32_t> label_S({300}, 1);
  for (std::size_t row = 0; row < 300; row += 2) label_S.values()[row] = -1;
  const TestTensor<float> loss_S = losses(logits_SC, label_S);
  const TestTensor<float> dlogits_SC = gradients(logits_SC, label_S);
  for (std::size_t row = 0; row < 300; ++row) {
    EXPECT_EQ(loss_S.values()[row] == 0, row % 2 == 0) << row;
    EXPECT_EQ(dlogits_SC.values()[2 * row] == 0, row % 2 == 0) << row;
    EXPECT_EQ(dlogits_SC.values()[2 * row + 1] == 0, row % 2 == 0) << row;
  }
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
