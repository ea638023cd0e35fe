#include "plenum/kernels/vocabulary_loss.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/ops/vocabulary_loss_run.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;
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

/// The rows of a tensor from `begin` on.
TestTensor<float> rows_from(const TestTensor<float>& tensor, std::int64_t begin, std::int64_t count) {
  const std::int64_t width = tensor.shape().num_elements() / tensor.shape()[0];
  const auto first = tensor.values().begin() + begin * width;
  const tensor::Shape shape =
      tensor.shape().num_dims() == 1 ? tensor::Shape{count} : tensor::Shape{count, width};
  return {shape, std::vector<float>(first, first + count * width)};
}

std::vector<double> doubles_of(const TestTensor<float>& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

/// The words [begin, end) of a case.
VocabularyLossRun slice_of(const VocabularyLossRun& whole, std::int64_t begin, std::int64_t end) {
  VocabularyLossRun slice(whole.device, whole.h_MD.shape()[0], whole.h_MD.shape()[1], end - begin);
  slice.h_MD = whole.h_MD;
  slice.label_M = whole.label_M;
  slice.w_VD = rows_from(whole.w_VD, begin, end - begin);
  slice.b_V = rows_from(whole.b_V, begin, end - begin);
  slice.dw_VD = rows_from(whole.dw_VD, begin, end - begin);
  slice.db_V = rows_from(whole.db_V, begin, end - begin);
  return slice;
}

constexpr std::array<std::int64_t, 4> kCuts = {0, 400, 1003, 1205};

TEST_P(VocabularyLossOn, SlicesOfADividedVocabularyHaveTheLossesOfTheWhole) {
  const OpContext context = VocabularyLossOn::context();
  constexpr std::int64_t M = 40;
  VocabularyLossRun whole(device(), M, 24, kCuts.back());
  VocabularyLossRun combined = whole;
  TestTensor<float> part_PM4({3, M, 4}, NAN);
  for (std::size_t i = 0; i < 3; ++i) {
    VocabularyLossRun slice = slice_of(whole, kCuts[i], kCuts[i + 1]);
    TestTensor<float> part_M4({M, 4}, NAN);
    Arguments arguments(context);
    kernels::VocabularyLossForward forward = slice.bind_forward(arguments);
    forward.words = {.first = kCuts[i], .whole = kCuts.back()};
    forward.part_M4 = arguments.out(part_M4);
    kernels::vocabulary_loss_forward(context.stream(), forward);
    arguments.fetch();
    std::ranges::copy(part_M4.values(), part_PM4.values().begin() + static_cast<std::ptrdiff_t>(i) * M * 4);
  }
  Arguments arguments(context);
  kernels::combine_vocabulary_parts(context.stream(), {.part_PM4 = arguments.in(part_PM4),
                                                       .label_M = arguments.in(combined.label_M),
                                                       .lse_M = arguments.out(combined.lse_M),
                                                       .loss_M = arguments.out(combined.loss_M),
                                                       .prediction_M = arguments.out(combined.prediction_M)});
  arguments.fetch();
  whole.forward(context);
  // A GPU rounds logits to what it computes with, of products that it may sum in another order.
  expect_near(combined.lse_M, doubles_of(whole.lse_M), "lse", compute_tolerance(device()));
  expect_near(combined.loss_M, doubles_of(whole.loss_M), "loss", compute_tolerance(device()));
  EXPECT_EQ(combined.prediction_M, whole.prediction_M);
}

TEST_P(VocabularyLossOn, SlicesOfADividedVocabularyHaveTheGradientsOfTheWhole) {
  const OpContext context = VocabularyLossOn::context();
  VocabularyLossRun whole(device(), 40, 24, kCuts.back());
  const VocabularyLossRun before = whole;
  whole.forward(context);
  whole.backward(context);
  const double tolerance = compute_tolerance(device());
  std::vector<double> dh(whole.dh_MD.values().size(), 0.0);
  for (std::size_t i = 0; i < 3; ++i) {
    VocabularyLossRun slice = slice_of(before, kCuts[i], kCuts[i + 1]);
    slice.label_M.values().assign(slice.label_M.values().size(), -1);
    slice.forward(context);  // for its logits
    slice.label_M = whole.label_M;
    Arguments arguments(context);
    kernels::VocabularyLossBackward backward = slice.bind_backward(
        arguments, arguments.out_compute(slice.logits_MW), arguments.in(whole.lse_M), Accumulate::Yes);
    backward.words = {.first = kCuts[i], .whole = kCuts.back()};
    kernels::vocabulary_loss_backward(context.stream(), backward);
    arguments.fetch();
    const std::int64_t count = kCuts[i + 1] - kCuts[i];
    expect_near(slice.dw_VD, doubles_of(rows_from(whole.dw_VD, kCuts[i], count)), "dw", tolerance);
    expect_near(slice.db_V, doubles_of(rows_from(whole.db_V, kCuts[i], count)), "db", tolerance);
    for (std::size_t at = 0; at < dh.size(); ++at) dh[at] += slice.dh_MD.values()[at];
  }
  expect_near(whole.dh_MD, dh, "dh", 2 * tolerance);
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
