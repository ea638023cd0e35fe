#include "plenum/kernels/vocabulary_loss.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/vocabulary_loss.h"

namespace plenum::ops {
namespace {

constexpr float kScale = 0.25F;

/// Arguments of one case and everything the op wrote.
struct Case {
  Case(std::int64_t masked, std::int64_t width, std::int64_t vocabulary)
      : h_MD(random_tensor({masked, width}, 1)),
        w_VD(random_tensor({vocabulary, width}, 2)),
        b_V(random_tensor({vocabulary}, 3)),
        label_M({masked}),
        logits_MV({masked, vocabulary}),
        tiles_MN2({masked, kernels::vocabulary_tiles(tensor::Device::Cpu, vocabulary), 2}),
        lse_M({masked}),
        loss_M({masked}),
        prediction_M({masked}),
        dh_MD({masked, width}, 7.0F),
        dw_VD(random_tensor({vocabulary, width}, 4)),
        db_V(random_tensor({vocabulary}, 5)) {
    // The first and the last word are among the labels.
    for (std::int64_t row = 0; row < masked; ++row) {
      label_M.values()[static_cast<std::size_t>(row)] =
          static_cast<std::int32_t>((row * (vocabulary / 2 + 1) + vocabulary - 1) % vocabulary);
    }
  }

  void forward(const tensor::Stream& stream) {
    kernels::vocabulary_loss_forward(stream, {.h_MD = h_MD.view(),
                                              .w_VD = w_VD.view(),
                                              .b_V = b_V.view(),
                                              .label_M = label_M.view(),
                                              .logits_MW = logits_MV,
                                              .tiles_MN2 = tiles_MN2,
                                              .lse_M = lse_M,
                                              .loss_M = loss_M,
                                              .prediction_M = prediction_M});
  }

  void backward(const tensor::Stream& stream) {
    kernels::vocabulary_loss_backward(stream, {.h_MD = h_MD.view(),
                                               .w_VD = w_VD.view(),
                                               .label_M = label_M.view(),
                                               .lse_M = lse_M.view(),
                                               .scale_1 = scale_1,
                                               .logits_MW = logits_MV,
                                               .dh_MD = dh_MD,
                                               .dw_VD = dw_VD,
                                               .db_V = db_V});
  }

  reference::VocabularyLoss reference() const {
    return {static_cast<std::size_t>(h_MD.shape()[0]),
            static_cast<std::size_t>(h_MD.shape()[1]),
            static_cast<std::size_t>(w_VD.shape()[0]),
            h_MD.doubles(),
            w_VD.doubles(),
            b_V.doubles(),
            label_M.values()};
  }

  friend bool operator==(const Case&, const Case&) = default;

  TestTensor<float> h_MD, w_VD, b_V;
  TestTensor<std::int32_t> label_M;
  TestTensor<double> scale_1{{1}, kScale};
  TestTensor<float> logits_MV, tiles_MN2, lse_M, loss_M;
  TestTensor<std::int32_t> prediction_M;
  TestTensor<float> dh_MD, dw_VD, db_V;
};

struct Sizes {
  std::int64_t masked, width, vocabulary;
};
// One row, one word, a tile to the brim, one word more, several tiles with a short last one, many rows,
// and more than are worked on at a time.
const std::vector<Sizes> kSizes = {{1, 5, 1},     {1, 3, 17},     {3, 16, 512}, {4, 7, 513},
                                   {9, 33, 1200}, {70, 24, 1030}, {300, 8, 40}, {1100, 4, 21}};

std::string name_of(const Sizes& sizes) {
  return fmt::format("M={} D={} V={}", sizes.masked, sizes.width, sizes.vocabulary);
}

TEST(VocabularyLossForward, MatchesTheReference) {
  const OpContext context;
  for (const Sizes& sizes : kSizes) {
    Case test(sizes.masked, sizes.width, sizes.vocabulary);
    test.forward(context.stream());
    const reference::VocabularyLoss reference = test.reference();
    std::vector<double> lse, loss;
    for (std::size_t row = 0; row < reference.masked; ++row) {
      lse.push_back(reference.lse(row));
      loss.push_back(reference.loss(row));
      EXPECT_EQ(test.prediction_M.values()[row], reference.prediction(row))
          << name_of(sizes) << " row " << row;
    }
    expect_near(test.lse_M, lse, name_of(sizes) + " lse");
    expect_near(test.loss_M, loss, name_of(sizes) + " loss");
  }
}

TEST(VocabularyLossForward, SurvivesLogitsBeyondTheRangeOfExp) {
  const OpContext context;
  Case test(2, 1, 600);
  test.h_MD.values() = {1, -1};
  for (std::size_t word = 0; word < 600; ++word) test.w_VD.values()[word] = static_cast<float>(word);
  test.forward(context.stream());
  const reference::VocabularyLoss reference = test.reference();
  const std::vector<double> loss = {reference.loss(0), reference.loss(1)};
  expect_near(test.loss_M, loss, "loss");
}

TEST(VocabularyLossForward, PredictsTheFirstOfEqualWords) {
  const OpContext context;
  Case test(1, 2, 1100);
  test.w_VD = TestTensor<float>({1100, 2});
  test.b_V = TestTensor<float>({1100}, -1.0F);
  for (const std::size_t word : {541UL, 542UL, 1050UL}) test.b_V.values()[word] = 3;
  test.forward(context.stream());
  EXPECT_EQ(test.prediction_M.values()[0], 541);
}

TEST(VocabularyLossForward, ShowsWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const OpContext context;
  // Not numbers with different bits, of which arithmetic on the bits of a number makes different things.
  for (const float bad : {std::bit_cast<float>(0x7fc00000U), std::bit_cast<float>(0x7fffffffU),
                          std::bit_cast<float>(0xffffffffU), kInfinity, -kInfinity}) {
    for (const std::size_t word : {0UL, 15UL, 16UL, 700UL, 1029UL}) {
      Case test(2, 4, 1030);
      test.b_V.values()[word] = bad;
      test.label_M.values() = {static_cast<std::int32_t>(word), 3};
      test.forward(context.stream());
      EXPECT_FALSE(std::isfinite(test.loss_M.values()[0])) << bad << " at " << word;
      // Minus infinity at another word than the label says that it never comes.
      EXPECT_EQ(std::isfinite(test.loss_M.values()[1]), bad == -kInfinity) << bad << " at " << word;
    }
  }
}

TEST(VocabularyLossReference, GradientsAreThoseOfItsLoss) {
  const reference::VocabularyLoss reference = Case(3, 4, 7).reference();
  const auto analytic = reference.gradients(kScale);
  const auto at = [&](std::vector<double> reference::VocabularyLoss::*argument) {
    return numeric_gradient(reference.*argument, [&](const std::vector<double>& point) {
      reference::VocabularyLoss moved = reference;
      moved.*argument = point;
      return double{kScale} * moved.total_loss();
    });
  };
  const auto expect_equal = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], kGradientRelative) << i;
  };
  expect_equal(analytic.dh_MD, at(&reference::VocabularyLoss::h_MD));
  expect_equal(analytic.dw_VD, at(&reference::VocabularyLoss::w_VD));
  expect_equal(analytic.db_V, at(&reference::VocabularyLoss::b_V));
}

TEST(VocabularyLossBackward, AddsToWeightGradientsAndOverwritesTheInputs) {
  const OpContext context;
  for (const Sizes& sizes : kSizes) {
    Case test(sizes.masked, sizes.width, sizes.vocabulary);
    const auto gradients = test.reference().gradients(kScale);
    const std::vector<double> dw_VD = plus(test.dw_VD.doubles(), gradients.dw_VD);
    const std::vector<double> db_V = plus(test.db_V.doubles(), gradients.db_V);
    test.forward(context.stream());
    test.backward(context.stream());
    expect_near(test.dh_MD, gradients.dh_MD, name_of(sizes) + " dh");
    expect_near(test.dw_VD, dw_VD, name_of(sizes) + " dw");
    expect_near(test.db_V, db_V, name_of(sizes) + " db");
  }
}

TEST(VocabularyLoss, GivesTheSameBytesTwiceAndOnThreeThreads) {
  const OpContext one;
  const OpContext three(3);
  for (const Sizes& sizes : kSizes) {
    std::vector<Case> runs(3, Case(sizes.masked, sizes.width, sizes.vocabulary));
    for (std::size_t run = 0; run < 3; ++run) {
      const tensor::Stream& stream = run == 2 ? three.stream() : one.stream();
      runs[run].forward(stream);
      runs[run].backward(stream);
    }
    EXPECT_EQ(runs[0], runs[1]) << name_of(sizes);
    EXPECT_EQ(runs[0], runs[2]) << name_of(sizes) << " on three threads";
  }
}

TEST(VocabularyLoss, WithoutPositionsChangesNothing) {
  const OpContext context;
  Case test(0, 8, 600);
  const Case before = test;
  test.forward(context.stream());
  test.backward(context.stream());
  EXPECT_EQ(test, before);
}

TEST(VocabularyLoss, RefusesLabelsOutsideTheVocabulary) {
  const OpContext context;
  Case test(2, 4, 10);
  test.label_M.values()[1] = 10;
  EXPECT_THROW(test.forward(context.stream()), base::InternalError);
  test.label_M.values()[1] = -2;
  EXPECT_THROW(test.backward(context.stream()), base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
