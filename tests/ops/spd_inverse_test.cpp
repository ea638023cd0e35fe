#include "plenum/kernels/spd_inverse.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "plenum/kernels/kronecker_factors.h"
#include "plenum/kernels/precondition.h"

#include "tests/ops/op_context.h"

namespace plenum::ops {
namespace {

using kernels::InverseState;

/// A multiple of the identity with `last` as the last element of the diagonal.
TestTensor<float> diagonal(std::int64_t size, float last) {
  TestTensor<float> matrix({size, size});
  for (std::int64_t i = 0; i < size; ++i)
    matrix.values()[static_cast<std::size_t>(i * size + i)] = i + 1 < size ? 2.0F : last;
  return matrix;
}

double failed_of(TestTensor<float> matrix, double least_pivot) {
  const OpContext context;
  const std::int64_t size = matrix.shape()[0];
  TestTensor<float> room({workspace::inverse_room_elements(tensor::Device::Cpu, {&size, 1})});
  TestTensor<double> state({kernels::kNumInverseStates});
  state.values()[kernels::index_of(InverseState::LeastPivotA)] = least_pivot;
  const kernels::SpdMatrix one{.matrix_NN = matrix, .state_C = state};
  kernels::invert_spd(context.stream(),
                      {.end_step = kernels::num_inverse_steps(size), .matrices = {&one, 1}, .room = room});
  return state.values()[kernels::index_of(InverseState::HasFailed)];
}

TEST(InvertSpd, SaysThatAMatrixIsNotPositiveDefinite) {
  EXPECT_EQ(failed_of(diagonal(130, 1.0F), 0), 0);
  EXPECT_EQ(failed_of(diagonal(130, 0.0F), 0), 1);
  EXPECT_EQ(failed_of(diagonal(130, -1.0F), 0), 1);
  EXPECT_EQ(failed_of(diagonal(130, NAN), 0), 1);
  EXPECT_EQ(failed_of(diagonal(130, INFINITY), 0), 1);
}

TEST(InvertSpd, RefusesAPivotBelowTheLeast) {
  EXPECT_EQ(failed_of(diagonal(70, 0.5F), 0.4), 0);
  EXPECT_EQ(failed_of(diagonal(70, 0.5F), 0.6), 1);
}

/// The factors of a map of two inputs and two outputs, through a whole refresh.
struct Refresh {
  explicit Refresh(const TestTensor<float>& sum_a, const TestTensor<float>& sum_b) {
    const tensor::Stream& stream = context.stream();
    const kernels::DampFactors damp = {.sum_a_DD = sum_a,
                                       .sum_b_EE = sum_b,
                                       .damping = 0.01,
                                       .a_DD = new_a,
                                       .b_EE = new_b,
                                       .state_C = state};
    kernels::damp_factors(stream, {&damp, 1});
    const std::array<kernels::SpdMatrix, 2> factors = {
        {{new_a, InverseState::LeastPivotA, state}, {new_b, InverseState::LeastPivotB, state}}};
    TestTensor<float> room({2 * 2 * kernels::kInversePanel});
    kernels::invert_spd(stream, {0, kernels::num_inverse_steps(2), factors, room});
    const kernels::TakeInverse take = {new_a, new_b, a, b, {}, state};
    kernels::take_inverse(stream, {&take, 1});
  }
  std::vector<float> preconditioned(std::vector<float> values) {
    TestTensor<float> gradient({2, 2}, std::move(values));
    TestTensor<float> room({2 * 2 * 2});
    const kernels::PreconditionedMap map = {a, b, state, gradient};
    kernels::precondition(context.stream(), {{&map, 1}, room});
    return gradient.values();
  }

  OpContext context;
  TestTensor<float> new_a{{2, 2}}, new_b{{2, 2}}, a{{2, 2}, NAN}, b{{2, 2}, NAN};
  TestTensor<double> state{{kernels::kNumInverseStates}};
};

const std::vector<float> kGradient = {1, -2, 3, 4};

TEST(Precondition, OfOneTokenIsFiniteAndKeepsTheNorm) {
  Refresh refresh({{2, 2}, {4, 2, 2, 1}}, {{2, 2}, {1e-12F, 0, 0, 0}});
  const std::vector<float> result = refresh.preconditioned(kGradient);
  double squares = 0;
  for (const float value : result) squares += double{value} * double{value};
  EXPECT_NEAR(squares, 30, 1e-4);
  EXPECT_NE(result, kGradient);
}

TEST(Precondition, WithoutGradientsOrWithNansPassesTheGradientOn) {
  EXPECT_EQ(Refresh({{2, 2}, {4, 2, 2, 1}}, TestTensor<float>({2, 2})).preconditioned(kGradient), kGradient);
  EXPECT_EQ(Refresh(TestTensor<float>({2, 2}), {{2, 2}, {1, 0, 0, 1}}).preconditioned(kGradient), kGradient);
  EXPECT_EQ(Refresh({{2, 2}, {NAN, 2, 2, 1}}, {{2, 2}, {1, 0, 0, 1}}).preconditioned(kGradient), kGradient);
  EXPECT_EQ(Refresh({{2, 2}, {4, 2, 2, INFINITY}}, {{2, 2}, {1, 0, 0, 1}}).preconditioned(kGradient),
            kGradient);
}

TEST(Precondition, LeavesAZeroGradientAtZero) {
  Refresh refresh({{2, 2}, {4, 2, 2, 3}}, {{2, 2}, {1, 0, 0, 1}});
  EXPECT_EQ(refresh.preconditioned({0, 0, 0, 0}), std::vector<float>(4, 0.0F));
}

}  // namespace
}  // namespace plenum::ops
