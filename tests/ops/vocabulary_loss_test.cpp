#include "plenum/kernels/vocabulary_loss.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"
#include "tests/reference/class_loss.h"
#include "tests/reference/vocabulary_loss.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;
using tensor::Device;

constexpr double kScale = 0.25;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Arguments of one case and everything the op wrote.
struct Case {
  Case(Device on, std::int64_t masked, std::int64_t width, std::int64_t vocabulary)
      : device(on),
        h_MD(rounded(random_tensor({masked, width}, 1), device)),
        w_VD(rounded(random_tensor({vocabulary, width}, 2), device)),
        b_V(rounded(random_tensor({vocabulary}, 3), device)),
        label_M({masked}),
        logits_MW({masked, kernels::vocabulary_stride(device, vocabulary)}, NAN),
        tiles_MN2({masked, kernels::vocabulary_tiles(device, vocabulary), 2}),
        lse_M({masked}),
        loss_M({masked}),
        prediction_M({masked}),
        dh_MD({masked, width}, 7.0F),
        dw_VD(random_tensor({vocabulary, width}, 4, 0.1)),
        db_V(random_tensor({vocabulary}, 5, 0.1)) {
    // The first and the last word are among the labels, and no label.
    for (std::int64_t row = 0; row < masked; ++row) {
      label_M.values()[static_cast<std::size_t>(row)] =
          row % 7 == 3
              ? -1
              : static_cast<std::int32_t>((row * (vocabulary / 2 + 1) + vocabulary - 1) % vocabulary);
    }
  }

  std::size_t masked() const { return static_cast<std::size_t>(h_MD.shape()[0]); }
  std::size_t vocabulary() const { return static_cast<std::size_t>(w_VD.shape()[0]); }
  std::string name() const { return fmt::format("M={} D={} V={}", masked(), h_MD.shape()[1], vocabulary()); }

  void forward(const OpContext& context) {
    Arguments arguments(context);
    kernels::vocabulary_loss_forward(context.stream(), {.h_MD = arguments.in_compute(h_MD),
                                                        .w_VD = arguments.in_compute(w_VD),
                                                        .b_V = arguments.in_compute(b_V),
                                                        .label_M = arguments.in(label_M),
                                                        .logits_MW = arguments.out_compute(logits_MW),
                                                        .tiles_MN2 = arguments.out(tiles_MN2),
                                                        .lse_M = arguments.out(lse_M),
                                                        .loss_M = arguments.out(loss_M),
                                                        .prediction_M = arguments.out(prediction_M)});
    arguments.fetch();
  }

  void backward(const OpContext& context, Accumulate accumulate = Accumulate::Yes) {
    Arguments arguments(context);
    kernels::vocabulary_loss_backward(context.stream(), {.h_MD = arguments.in_compute(h_MD),
                                                         .w_VD = arguments.in_compute(w_VD),
                                                         .label_M = arguments.in(label_M),
                                                         .lse_M = arguments.in(lse_M),
                                                         .scale_1 = arguments.in(scale_1),
                                                         .logits_MW = arguments.out_compute(logits_MW),
                                                         .dh_MD = arguments.out_compute(dh_MD),
                                                         .dw_VD = arguments.out(dw_VD),
                                                         .db_V = arguments.out(db_V),
                                                         .accumulate = accumulate});
    arguments.fetch();
  }

  /// The logits that forward left of a row, without what lies behind the vocabulary.
  std::span<const float> logits(std::size_t row) const {
    const auto stride = static_cast<std::size_t>(logits_MW.shape()[1]);
    return std::span(logits_MW.values()).subspan(row * stride, vocabulary());
  }

  reference::VocabularyLoss reference() const {
    return {masked(),        static_cast<std::size_t>(h_MD.shape()[1]),
            vocabulary(),    h_MD.doubles(),
            w_VD.doubles(),  b_V.doubles(),
            label_M.values()};
  }

  Device device;
  TestTensor<float> h_MD, w_VD, b_V;
  TestTensor<std::int32_t> label_M;
  TestTensor<double> scale_1{{1}, kScale};
  TestTensor<float> logits_MW, tiles_MN2, lse_M, loss_M;
  TestTensor<std::int32_t> prediction_M;
  TestTensor<float> dh_MD, dw_VD, db_V;
};

/// What a step reads of a case, beside its logits.
bool has_same_results(const Case& a, const Case& b) {
  return a.lse_M == b.lse_M && a.loss_M == b.loss_M && a.prediction_M == b.prediction_M &&
         a.dh_MD == b.dh_MD && a.dw_VD == b.dw_VD && a.db_V == b.db_V;
}

/// Compares the logits with the reference, as closely as their type can; and what is made of them with what
/// double precision makes of the same logits.
void expect_losses(const Case& test) {
  const reference::VocabularyLoss reference = test.reference();
  std::vector<float> logits;
  std::vector<double> expected_logits, lse, loss;
  for (std::size_t row = 0; row < test.masked(); ++row) {
    const std::span<const float> row_logits = test.logits(row);
    logits.insert(logits.end(), row_logits.begin(), row_logits.end());
    for (std::size_t word = 0; word < test.vocabulary(); ++word) {
      expected_logits.push_back(reference.logit(row, word));
    }
    const std::vector<double> as_double(row_logits.begin(), row_logits.end());
    const std::int32_t label = test.label_M.values()[row];
    lse.push_back(as_double[0] + reference::class_loss(as_double, {0}));
    loss.push_back(label < 0 ? 0 : reference::class_loss(as_double, {label}));
    EXPECT_EQ(test.prediction_M.values()[row], std::ranges::max_element(row_logits) - row_logits.begin())
        << test.name() << " row " << row;
  }
  expect_near(logits, expected_logits, test.name() + " logits", compute_tolerance(test.device));
  expect_near(test.lse_M, lse, test.name() + " lse");
  expect_near(test.loss_M, loss, test.name() + " loss");
}

class VocabularyLossOn : public OnDevice {
 protected:
  static OpContext context() { return OpContext(device(), kernels::vocabulary_loss_scratch_bytes(device())); }
  /// One row, one word, a tile to the brim, one word more, several tiles with a short last one, many rows,
  /// more than are worked on at a time, and more words than a block of the GPU takes at once.
  static std::vector<Case> cases() {
    return {{device(), 1, 5, 1},    {device(), 1, 3, 17},    {device(), 3, 16, 512},
            {device(), 4, 7, 513},  {device(), 9, 33, 1200}, {device(), 70, 24, 1030},
            {device(), 300, 8, 40}, {device(), 1100, 4, 21}, {device(), 33, 8, 9001}};
  }
};
INSTANTIATE_TEST_SUITE_P(VocabularyLoss, VocabularyLossOn, kDevices, device_of);

TEST_P(VocabularyLossOn, ForwardMatchesTheReference) {
  const OpContext context = VocabularyLossOn::context();
  for (Case& test : cases()) {
    test.forward(context);
    expect_losses(test);
  }
}

TEST_P(VocabularyLossOn, ForwardSurvivesLogitsBeyondTheRangeOfExp) {
  const OpContext context = VocabularyLossOn::context();
  Case test(device(), 2, 1, 600);
  test.h_MD.values() = {1, -1};
  for (std::size_t word = 0; word < 600; ++word) test.w_VD.values()[word] = static_cast<float>(word);
  test.w_VD = rounded(test.w_VD, device());
  test.forward(context);
  expect_losses(test);
}

TEST_P(VocabularyLossOn, ForwardPredictsTheFirstOfEqualWords) {
  const OpContext context = VocabularyLossOn::context();
  for (const std::size_t first : {0UL, 5UL, 541UL, 2049UL}) {
    Case test(device(), 1, 2, 5000);
    test.w_VD = TestTensor<float>({5000, 2});
    test.b_V = TestTensor<float>({5000}, -1.0F);
    for (const std::size_t word : {first, first + 1, 3000UL, 4999UL}) test.b_V.values()[word] = 3;
    test.forward(context);
    EXPECT_EQ(test.prediction_M.values()[0], first);
  }
}

TEST_P(VocabularyLossOn, ForwardNeedsNoPlaceForPredictions) {
  const OpContext context = VocabularyLossOn::context();
  Case with(device(), 9, 33, 1200);
  Case without = with;
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
      Case test(device(), 2, 4, 1030);
      test.b_V.values()[word] = bad;
      test.label_M.values() = {static_cast<std::int32_t>(word), 3};
      test.forward(context);
      EXPECT_FALSE(std::isfinite(test.loss_M.values()[0])) << bad << " at " << word;
      // Minus infinity at another word than the label says that it never comes.
      EXPECT_EQ(std::isfinite(test.loss_M.values()[1]), bad == -kInfinity) << bad << " at " << word;
    }
  }
}

TEST(VocabularyLossReference, GradientsAreThoseOfItsLoss) {
  const reference::VocabularyLoss reference = Case(Device::Cpu, 3, 4, 7).reference();
  const auto analytic = reference.gradients(kScale);
  const auto at = [&](std::vector<double> reference::VocabularyLoss::*argument) {
    return numeric_gradient(reference.*argument, [&](const std::vector<double>& point) {
      reference::VocabularyLoss moved = reference;
      moved.*argument = point;
      return kScale * moved.total_loss();
    });
  };
  const auto expect_equal = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], kGradientRelative) << i;
  };
  expect_equal(analytic.dh_MD, at(&reference::VocabularyLoss::h_MD));
  expect_equal(analytic.dw_VD, at(&reference::VocabularyLoss::w_VD));
  expect_equal(analytic.db_V, at(&reference::VocabularyLoss::b_V));
}

TEST_P(VocabularyLossOn, BackwardAddsToWeightGradientsAndOverwritesTheInputs) {
  const OpContext context = VocabularyLossOn::context();
  for (Case& test : cases()) {
    const auto gradients = test.reference().gradients(kScale);
    const std::vector<double> dw_VD = plus(test.dw_VD.doubles(), gradients.dw_VD);
    const std::vector<double> db_V = plus(test.db_V.doubles(), gradients.db_V);
    test.forward(context);
    test.backward(context);
    // All of them are sums of gradients of logits, which come from rounded logits.
    const double tolerance = compute_tolerance(device());
    expect_near(test.dh_MD, gradients.dh_MD, test.name() + " dh", tolerance);
    expect_near(test.dw_VD, dw_VD, test.name() + " dw", tolerance);
    expect_near(test.db_V, db_V, test.name() + " db", tolerance);
  }
}

TEST_P(VocabularyLossOn, BackwardOverwritesWhateverWeightGradientsWere) {
  const OpContext context = VocabularyLossOn::context();
  std::vector<Case> all = cases();
  all.emplace_back(device(), 0, 8, 40);
  for (Case& test : all) {
    test.forward(context);
    Case from_zero = test;
    std::ranges::fill(from_zero.dw_VD.values(), 0.0F);
    from_zero.backward(context);
    std::ranges::fill(test.dw_VD.values(), NAN);
    test.backward(context, Accumulate::No);
    EXPECT_TRUE(has_same_results(test, from_zero)) << test.name();
  }
}

TEST_P(VocabularyLossOn, PositionsWithoutLabelHaveNeitherLossNorGradient) {
  const OpContext context = VocabularyLossOn::context();
  Case test(device(), 40, 8, 300);
  test.label_M = TestTensor<std::int32_t>({40}, -1);
  const Case before = test;
  test.forward(context);
  test.backward(context);
  EXPECT_EQ(test.loss_M, TestTensor<float>({40}));
  EXPECT_EQ(test.dh_MD, TestTensor<float>({40, 8}));
  EXPECT_EQ(test.dw_VD, before.dw_VD);
  EXPECT_EQ(test.db_V, before.db_V);
}

TEST_P(VocabularyLossOn, GivesTheSameBytesTwice) {
  const OpContext context = VocabularyLossOn::context();
  for (const Case& test : cases()) {
    std::vector<Case> runs(2, test);
    for (Case& run : runs) {
      run.forward(context);
      run.backward(context);
    }
    EXPECT_TRUE(has_same_results(runs[0], runs[1])) << test.name();
  }
}

TEST_P(VocabularyLossOn, WithoutPositionsChangesNothing) {
  const OpContext context = VocabularyLossOn::context();
  Case test(device(), 0, 8, 600);
  const Case before = test;
  test.forward(context);
  test.backward(context);
  EXPECT_TRUE(has_same_results(test, before));
}

TEST(VocabularyLoss, GivesTheSameBytesOnThreeThreads) {
  const OpContext one;
  const OpContext three(3);
  for (const Case& test : {Case(Device::Cpu, 9, 33, 1200), Case(Device::Cpu, 1100, 4, 21)}) {
    std::vector<Case> runs(2, test);
    for (std::size_t run = 0; run < 2; ++run) {
      const OpContext& context = run == 0 ? one : three;
      runs[run].forward(context);
      runs[run].backward(context);
    }
    EXPECT_TRUE(has_same_results(runs[0], runs[1])) << test.name();
  }
}

TEST(VocabularyLoss, RefusesLabelsOutsideTheVocabulary) {
  const OpContext context;
  Case test(Device::Cpu, 2, 4, 10);
  test.label_M.values()[1] = 10;
  EXPECT_THROW(test.forward(context), base::InternalError);
  test.label_M.values()[1] = -2;
  EXPECT_THROW(test.backward(context), base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
