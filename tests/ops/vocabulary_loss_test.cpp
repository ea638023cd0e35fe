#include "plenum/kernels/vocabulary_loss.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/ops/vocabulary_loss_run.h"

namespace plenum::ops {
namespace {

using tensor::Device;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VocabularyLossOn : public OnDevice {
 protected:
  static OpContext context() { return OpContext(device(), kernels::vocabulary_loss_scratch_bytes(device())); }
};
INSTANTIATE_TEST_SUITE_P(VocabularyLoss, VocabularyLossOn, kDevices, device_of);

TEST_P(VocabularyLossOn, ForwardSurvivesLogitsBeyondTheRangeOfExp) {
  const OpContext context = VocabularyLossOn::context();
  VocabularyLossRun test(device(), 2, 1, 600);
  test.h_MD.values() = {1, -1};
  for (std::size_t word = 0; word < 600; ++word) test.w_VD.values()[word] = static_cast<float>(word);
  test.w_VD = rounded(test.w_VD, device());
  test.forward(context);
  const ExpectedOfLogits expected(test);
  expect_near(test.lse_M, expected.lse, "lse");
  expect_near(test.loss_M, expected.loss, "loss");
}

TEST_P(VocabularyLossOn, ForwardPredictsTheFirstOfEqualWords) {
  const OpContext context = VocabularyLossOn::context();
  for (const std::size_t first : {0UL, 5UL, 541UL, 2049UL}) {
    VocabularyLossRun test(device(), 1, 2, 5000);
    test.w_VD = TestTensor<float>({5000, 2});
    test.b_V = TestTensor<float>({5000}, -1.0F);
    for (const std::size_t word : {first, first + 1, 3000UL, 4999UL}) test.b_V.values()[word] = 3;
    test.forward(context);
    EXPECT_EQ(test.prediction_M.values()[0], first);
  }
}

TEST_P(VocabularyLossOn, ForwardNeedsNoPlaceForPredictions) {
  const OpContext context = VocabularyLossOn::context();
  VocabularyLossRun with(device(), 9, 33, 1200);
  VocabularyLossRun without = with;
  with.forward(context);
  Arguments arguments(context);
  kernels::vocabulary_loss_forward(context.stream(), {.h_MD = arguments.in_compute(without.h_MD),
                                                      .w_VD = arguments.in_compute(without.w_VD),
                                                      .b_V = arguments.in_compute(without.b_V),
                                                      .label_M = arguments.in(without.label_M),
                                                      .logits_MW = arguments.out_compute(without.logits_MW),
                                                      .tiles_MN2 = arguments.out(without.tiles_MN2),
                                                      .lse_M = arguments.out(without.lse_M),
                                                      .loss_M = arguments.out(without.loss_M),
                                                      .prediction_M = {}});
  arguments.fetch();
  EXPECT_EQ(without.loss_M, with.loss_M);
}

TEST_P(VocabularyLossOn, ForwardShowsWhatIsNotFinite) {
  const OpContext context = VocabularyLossOn::context();
  // Not numbers with different bits, of which arithmetic on the bits of a number makes different things.
  for (const float bad : {std::bit_cast<float>(0x7fc00000U), std::bit_cast<float>(0x7fffffffU),
                          std::bit_cast<float>(0xffffffffU), kInfinity, -kInfinity}) {
    for (const std::size_t word : {0UL, 15UL, 16UL, 700UL, 1029UL}) {
      VocabularyLossRun test(device(), 2, 4, 1030);
      test.b_V.values()[word] = bad;
      test.label_M.values() = {static_cast<std::int32_t>(word), 3};
      test.forward(context);
      EXPECT_FALSE(std::isfinite(test.loss_M.values()[0])) << bad << " at " << word;
      // Minus infinity at another word than the label says that it never comes.
      EXPECT_EQ(std::isfinite(test.loss_M.values()[1]), bad == -kInfinity) << bad << " at " << word;
    }
  }
}

TEST_P(VocabularyLossOn, PositionsWithoutLabelHaveNeitherLossNorGradient) {
  const OpContext context = VocabularyLossOn::context();
  VocabularyLossRun test(device(), 40, 8, 300);
  test.label_M = TestTensor<std::int32_t>({40}, -1);
  const VocabularyLossRun before = test;
  test.forward(context);
  test.backward(context);
  EXPECT_EQ(test.loss_M, TestTensor<float>({40}));
  EXPECT_EQ(test.dh_MD, TestTensor<float>({40, 8}));
  EXPECT_EQ(test.dw_VD, before.dw_VD);
  EXPECT_EQ(test.db_V, before.db_V);
}

TEST(VocabularyLoss, RefusesLabelsOutsideTheVocabulary) {
  const OpContext context;
  VocabularyLossRun test(Device::Cpu, 2, 4, 10);
  test.label_M.values()[1] = 10;
  EXPECT_THROW(test.forward(context), base::InternalError);
  test.label_M.values()[1] = -2;
  EXPECT_THROW(test.backward(context), base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
