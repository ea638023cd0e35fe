// What is special to the losses of tasks, and to the dropout in front of a head's output.

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "plenum/batch/group_label.h"
#include "plenum/kernels/dropout_rows.h"
#include "plenum/kernels/group_loss.h"
#include "plenum/kernels/squared_loss.h"

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using batch::GroupLabel;

const TestTensor<double> kScale_1({1}, 0.5);

class TaskLosses : public OnDevice {
 protected:
  static std::vector<float> group_losses(const TestTensor<float>& logits_MC,
                                         const TestTensor<std::int32_t>& label_M) {
    const OpContext context(device());
    Arguments arguments(context);
    TestTensor<float> loss_M(label_M.shape(), 9.0F);
    kernels::group_loss_forward(context.stream(), {.logits_MC = arguments.in_compute(logits_MC),
                                                   .label_M = arguments.in(label_M),
                                                   .loss_M = arguments.out(loss_M)});
    arguments.fetch();
    return loss_M.values();
  }
  static TestTensor<float> group_gradients(TestTensor<float> logits_MC,
                                           const TestTensor<std::int32_t>& label_M, bool is_in_place) {
    const OpContext context(device());
    Arguments arguments(context);
    TestTensor<float> apart_MC(logits_MC.shape(), 9.0F);
    const tensor::TensorView logits = arguments.out_compute(logits_MC);
    const tensor::TensorView dlogits = is_in_place ? logits : arguments.out_compute(apart_MC);
    kernels::group_loss_backward(context.stream(), {.logits_MC = logits,
                                                    .label_M = arguments.in(label_M),
                                                    .scale_1 = arguments.in(kScale_1),
                                                    .dlogits_MC = dlogits});
    arguments.fetch();
    return is_in_place ? logits_MC : apart_MC;
  }
};
INSTANTIATE_TEST_SUITE_P(On, TaskLosses, kDevices, device_of);

TEST_P(TaskLosses, OfGroupsSurviveLargeLogitsAndShowWhatIsNotFinite) {
  constexpr std::int32_t kFirst = GroupLabel::kFirst;
  const float infinity = std::numeric_limits<float>::infinity();
  const TestTensor<float> logits_MC({8, 1}, {1000, -1000, 1000, -1000, infinity, 0, NAN, 0});
  const TestTensor<std::int32_t> label_M({8}, {kFirst | 1, 0, kFirst, 1, kFirst, 1, kFirst | 1, 0});
  const std::vector<float> losses = group_losses(logits_MC, label_M);
  EXPECT_EQ(losses[0], 0);
  EXPECT_EQ(losses[2], 2000);
  EXPECT_FALSE(std::isfinite(losses[4]));
  EXPECT_FALSE(std::isfinite(losses[6]));
  for (const std::size_t row : {1, 3, 5, 7}) EXPECT_EQ(losses[row], 0) << row;
}

TEST_P(TaskLosses, OfGroupsHaveTheSameGradientsInPlace) {
  TestTensor<std::int32_t> label_M({50}, 0);
  for (const std::size_t first : {0, 1, 40}) label_M.values()[first] = GroupLabel::kFirst | 3;
  label_M.values()[49] = -1;
  const TestTensor<float> logits_MC = rounded(random_tensor({50, 2}, 2, 2), device());
  EXPECT_EQ(group_gradients(logits_MC, label_M, true), group_gradients(logits_MC, label_M, false));
}

TEST_P(TaskLosses, OfNumbersHaveTheSameGradientsInPlace) {
  const auto label = [](float number) { return std::bit_cast<std::int32_t>(number); };
  const TestTensor<std::int32_t> label_M({4}, {label(-1), label(2.5F), -1, label(0)});
  TestTensor<float> logits_M1({4, 1}, {1, 2, 3, -4});
  const OpContext context(device());
  Arguments arguments(context);
  const tensor::TensorView place = arguments.out_compute(logits_M1);
  kernels::squared_loss_backward(context.stream(), {.logits_M1 = place,
                                                    .label_M = arguments.in(label_M),
                                                    .scale_1 = arguments.in(kScale_1),
                                                    .dlogits_M1 = place});
  arguments.fetch();
  EXPECT_EQ(logits_M1.values(), (std::vector<float>{2, -0.5F, 0, -4}));
}

TEST_P(TaskLosses, DropTheSameRowsInPlace) {
  const TestTensor<std::int64_t> sample_T({9}, 7);
  const TestTensor<std::int32_t> position_T({9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const kernels::Dropout dropout{.threshold = 100,
                                 .key = base::RandomFunction(7, base::Purpose::Dropout, 3).key(),
                                 .site = kernels::DropoutSite::HeadInput};
  const TestTensor<float> x_TD = rounded(random_tensor({9, 40}, 4), device());
  const auto dropped = [&](bool is_in_place) {
    const OpContext context(device());
    Arguments arguments(context);
    TestTensor<float> place_TD = x_TD, apart_TD({9, 40});
    const tensor::TensorView x = arguments.out_compute(place_TD);
    kernels::dropout_rows(context.stream(), {.x_TD = x,
                                             .dropout = dropout,
                                             .rows = {.sample_T = arguments.in(sample_T),
                                                      .position_T = arguments.in(position_T)},
                                             .y_TD = is_in_place ? x : arguments.out_compute(apart_TD)});
    arguments.fetch();
    return is_in_place ? place_TD : apart_TD;
  };
  EXPECT_EQ(dropped(true), dropped(false));
}

TEST(TaskLossesOnCpu, RefuseLabelsThatAreNoGroups) {
  const OpContext context;
  const auto expect_refused = [&](std::vector<std::int32_t> labels) {
    const TestTensor<float> logits_MC({3, 1});
    const TestTensor<std::int32_t> label_M({3}, std::move(labels));
    TestTensor<float> loss_M({3});
    EXPECT_THROW(
        kernels::group_loss_forward(
            context.stream(), {.logits_MC = logits_MC.view(), .label_M = label_M.view(), .loss_M = loss_M}),
        base::InternalError);
  };
  constexpr std::int32_t kFirst = GroupLabel::kFirst;
  expect_refused({0, 1, 0});                // before the first of a group
  expect_refused({kFirst | 1, 1, 0});       // two answers
  expect_refused({kFirst | 1, kFirst, 0});  // none
  expect_refused({kFirst | 3, 0, 0});       // of a second column
  expect_refused({kFirst | 1, -1, 0});      // behind the end of a group
}

TEST(TaskLossesOnCpu, DropNoRowsWithoutTheirIdentities) {
  const OpContext context;
  TestTensor<float> x_TD({2, 16});
  EXPECT_THROW(kernels::dropout_rows(
                   context.stream(),
                   {.x_TD = x_TD.view(), .dropout = {.threshold = 9}, .rows = {}, .y_TD = x_TD.view()}),
               base::InternalError);
}

}  // namespace
}  // namespace plenum::ops
