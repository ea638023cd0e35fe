#include "plenum/kernels/cpu/gemm.h"

#include <tuple>

#include <fmt/format.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/activation.h"

namespace plenum::ops {
namespace {

using kernels::Accumulate;
using kernels::cpu::Gemm;

/// One product with room at the end of every row that must not be touched.
struct Case {
  std::int64_t m, n, k;
  bool a_is_transposed = false;
  bool b_is_transposed = false;
  std::int64_t room = 0;

  std::string name() const {
    return fmt::format("{}x{}x{}{}{}", m, n, k, a_is_transposed ? " A^T" : "", b_is_transposed ? " B^T" : "");
  }
  std::int64_t a_stride() const { return (a_is_transposed ? m : k) + room; }
  std::int64_t b_stride() const { return (b_is_transposed ? k : n) + room; }
  std::int64_t c_stride() const { return n + room; }
  TestTensor<float> random_a() const { return random_tensor({a_is_transposed ? k : m, a_stride()}, 1); }
  TestTensor<float> random_b() const { return random_tensor({b_is_transposed ? n : k, b_stride()}, 2); }
  TestTensor<float> random_c() const { return random_tensor({m, c_stride()}, 3); }

  Gemm gemm(const TestTensor<float>& a, const TestTensor<float>& b, TestTensor<float>& c) const {
    return {.m = m,
            .n = n,
            .k = k,
            .a = {.data = a.values().data(), .stride = a_stride(), .is_transposed = a_is_transposed},
            .b = {.data = b.values().data(), .stride = b_stride(), .is_transposed = b_is_transposed},
            .c = c.values().data(),
            .c_stride = c_stride()};
  }
};

/// What C becomes, its room included.
std::vector<double> reference(const Gemm& args, const std::vector<double>& c) {
  std::vector<double> result = c;
  for (std::int64_t i = 0; i < args.m; ++i) {
    for (std::int64_t j = 0; j < args.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < args.k; ++k) {
        sum += static_cast<double>(
                   args.a.data[args.a.is_transposed ? k * args.a.stride + i : i * args.a.stride + k]) *
               args.b.data[args.b.is_transposed ? j * args.b.stride + k : k * args.b.stride + j];
      }
      double& target = result[static_cast<std::size_t>(i * args.c_stride + j)];
      target = args.alpha * sum + (args.accumulate == Accumulate::Yes ? target : 0);
    }
  }
  return result;
}

class GemmLayouts : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(GemmLayouts, EveryShapeIsRight) {
  const OpContext context(1, kernels::cpu::gemm_scratch_bytes());
  const std::span<std::byte> scratch = context.stream().scratch(0);
  for (const auto& [m, n, k] : std::vector<std::tuple<int, int, int>>{{1, 1, 1},
                                                                      {6, 64, 4},
                                                                      {7, 65, 5},
                                                                      {5, 15, 3},
                                                                      {13, 31, 17},
                                                                      {12, 48, 0},
                                                                      {0, 7, 5},
                                                                      {5, 0, 5},
                                                                      {3, 129, 33},
                                                                      {97, 50, 66},
                                                                      {20, 300, 20},
                                                                      {8, 70, 1100},
                                                                      {9, 800, 300},
                                                                      {140, 50, 270}}) {
    for (const std::int64_t room : {0, 3}) {
      const auto [a_is_transposed, b_is_transposed] = GetParam();
      const Case c = {m, n, k, a_is_transposed, b_is_transposed, room};
      const TestTensor<float> a = c.random_a();
      const TestTensor<float> b = c.random_b();
      TestTensor<float> result = c.random_c();
      Gemm args = c.gemm(a, b, result);
      std::vector<double> expected = reference(args, result.doubles());
      kernels::cpu::gemm(args, scratch);
      expect_near(result, expected, c.name());

      args.accumulate = Accumulate::Yes;
      args.alpha = 0.5F;
      expected = reference(args, result.doubles());
      kernels::cpu::gemm(args, scratch);
      expect_near(result, expected, c.name() + " added");
    }
  }
}

TEST_P(GemmLayouts, ThreadsAndPanelsDoNotChangeABit) {
  const auto [a_is_transposed, b_is_transposed] = GetParam();
  const Case c = {291, 390, 700, a_is_transposed, b_is_transposed};
  const TestTensor<float> a = c.random_a();
  const TestTensor<float> b = c.random_b();
  TestTensor<float> alone({c.m, c.n});
  const OpContext context(1, kernels::cpu::gemm_scratch_bytes());
  const std::span<std::byte> scratch = context.stream().scratch(0);
  kernels::cpu::gemm(c.gemm(a, b, alone), scratch);
  for (const std::size_t num_threads : {1U, 3U, 16U}) {
    const OpContext threads(num_threads, kernels::cpu::gemm_scratch_bytes());
    TestTensor<float> together({c.m, c.n});
    kernels::cpu::parallel_gemm(threads.stream(), c.gemm(a, b, together));
    EXPECT_EQ(alone, together) << num_threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmLayouts, testing::Combine(testing::Bool(), testing::Bool()));

TEST(Gemm, EpilogueAddsBiasAndAppliesGelu) {
  const OpContext context(2);
  for (const std::int64_t n : {1, 16, 70, 300}) {
    const Case c = {.m = 33, .n = n, .k = 600, .room = 2};
    const TestTensor<float> a = c.random_a();
    const TestTensor<float> b = random_tensor({c.k, c.b_stride()}, 2, 0.1);
    const TestTensor<float> bias = random_tensor({n}, 4);
    const TestTensor<float> gelu_input = random_tensor({c.m, c.c_stride()}, 5, 3);
    TestTensor<float> result = c.random_c();
    TestTensor<float> gelu = c.random_c();
    Gemm args = c.gemm(a, b, result);
    std::vector<double> expected = reference(args, result.doubles());
    std::vector<double> expected_gelu = gelu.doubles();
    for (std::int64_t i = 0; i < c.m * c.c_stride(); ++i) {
      const std::int64_t column = i % c.c_stride();
      if (column >= n) continue;
      const auto at = static_cast<std::size_t>(i);
      expected[at] += bias.values()[static_cast<std::size_t>(column)];
      expected[at] *= reference::gelu_derivative(gelu_input.values()[at]);
      expected_gelu[at] = reference::gelu(expected[at]);
    }
    args.epilogue = {
        .bias = bias.values().data(), .gelu_input = gelu_input.values().data(), .gelu = gelu.values().data()};
    kernels::cpu::parallel_gemm(context.stream(), args);
    expect_near(result, expected, c.name());
    expect_near(gelu, expected_gelu, c.name() + " gelu");
  }
}

TEST(Gemm, NotANumberIsSeen) {
  const Case c = {.m = 9, .n = 20, .k = 8};
  TestTensor<float> a = c.random_a();
  const TestTensor<float> b = c.random_b();
  TestTensor<float> result({c.m, c.n});
  a.values()[static_cast<std::size_t>(8 * c.k + 3)] = std::numeric_limits<float>::quiet_NaN();
  const OpContext context(1, kernels::cpu::gemm_scratch_bytes());
  const std::span<std::byte> scratch = context.stream().scratch(0);
  kernels::cpu::gemm(c.gemm(a, b, result), scratch);
  for (std::int64_t i = 0; i < c.m * c.n; ++i) {
    EXPECT_EQ(std::isnan(result.values()[static_cast<std::size_t>(i)]), i / c.n == 8) << i;
  }
}

}  // namespace
}  // namespace plenum::ops
