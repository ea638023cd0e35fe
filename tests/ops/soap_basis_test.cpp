#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/kernels/linear.h"
#include "plenum/kernels/soap_step.h"

#include "tests/ops/op_context.h"
#include "tests/ops/op_testing.h"

namespace plenum::kernels {
namespace {

/// A symmetric factor, and a basis that is not orthonormal yet.
struct Begun {
  explicit Begun(std::int64_t N)
      : N(N), factor(static_cast<std::size_t>(N * N)), basis(factor.size()), room(factor.size()) {
    for (std::int64_t i = 0; i < N; ++i) {
      for (std::int64_t j = 0; j < N; ++j) {
        factor[static_cast<std::size_t>(i * N + j)] = 1.0F / static_cast<float>(1 + std::abs(i - j));
        basis[static_cast<std::size_t>(i * N + j)] =
            i == j ? 1.0F : 0.01F * static_cast<float>((i * 7 + j * 3) % 11);
      }
    }
  }
  tensor::TensorView square(std::vector<float>& values) const { return {values.data(), {N, N}}; }

  std::int64_t N;
  std::vector<float> factor, basis, room;
};

TEST(SoapBasis, InStepsHasTheBytesOfTheWholeHoweverTheyAreCut) {
  const ops::OpContext context(2, linear_scratch_bytes(tensor::Device::Cpu));
  for (const std::int64_t N : {1, 31, 32, 100}) {
    Begun whole(N);
    soap_basis(context.stream(), {.factor_NN = whole.square(whole.factor),
                                  .basis_NN = whole.square(whole.basis),
                                  .room = {whole.room.data(), {N * N}}});
    for (const std::int64_t length : {1, 2, 3, 5, 50}) {
      SCOPED_TRACE(testing::Message() << N << " in steps of " << length);
      Begun cut(N);
      const std::vector<float> before = cut.basis;
      for (std::int64_t first = 0; first < num_soap_basis_steps(N); first += length) {
        EXPECT_TRUE(cut.basis == before) << "it is in use until the last step";
        soap_basis(context.stream(), {.factor_NN = cut.square(cut.factor),
                                      .basis_NN = cut.square(cut.basis),
                                      .room = {cut.room.data(), {N * N}},
                                      .iterate_NN = cut.square(cut.factor),
                                      .first_step = first,
                                      .end_step = std::min(first + length, num_soap_basis_steps(N))});
        std::ranges::fill(cut.room, -1.0F);  // nothing goes through the room from one step to the next
      }
      EXPECT_TRUE(cut.basis == whole.basis);
    }
  }
}

}  // namespace
}  // namespace plenum::kernels
