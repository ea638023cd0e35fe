#include "plenum/kernels/embedding.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

constexpr std::int64_t T = 9;
constexpr std::int64_t D = 40;
constexpr std::int64_t V = 7;

/// Sums of the rows of three tables, of which only the words' differ.
class EmbeddingOn : public OnDevice {
 protected:
  static OpContext context() { return OpContext(device(), kernels::embedding_scratch_bytes(device(), T, D)); }

  kernels::EmbeddingForward bind_forward(Arguments& arguments) {
    return {.id_T = arguments.in(ids_),
            .position_T = arguments.in(zeros_),
            .segment_T = arguments.in(zeros_),
            .word_VD = arguments.in_compute(words_),
            .position_PD = arguments.in_compute(position_),
            .segment_GD = arguments.in_compute(position_),
            .gamma_D = arguments.in(gamma_),
            .beta_D = arguments.in(gamma_),
            .dropout = {},
            .rows = {},
            .z_TD = arguments.out_compute(z_),
            .y_TD = arguments.out_compute(y_),
            .mean_T = arguments.out(mean_),
            .inverse_deviation_T = arguments.out(inverse_deviation_)};
  }

  void backward(const OpContext& context, const kernels::RowSlice& words, TestTensor<float>& dword) {
    Arguments arguments(context);
    TestTensor<float> dz({T, D});
    TestTensor<float> dposition({1, D});
    TestTensor<float> dsegment({1, D});
    TestTensor<float> dgamma({D});
    TestTensor<float> dbeta({D});
    kernels::embedding_backward(context.stream(), {.dy_TD = arguments.in_compute(dy_),
                                                   .z_TD = arguments.in_compute(z_),
                                                   .mean_T = arguments.in(mean_),
                                                   .inverse_deviation_T = arguments.in(inverse_deviation_),
                                                   .gamma_D = arguments.in(gamma_),
                                                   .dropout = {},
                                                   .rows = {},
                                                   .by_word = {.entry_G = arguments.in(entries_),
                                                               .start_G = arguments.in(starts_),
                                                               .row_R = arguments.in(rows_)},
                                                   .words = words,
                                                   .by_position = {},
                                                   .by_segment = {},
                                                   .dz_TD = arguments.out_compute(dz),
                                                   .dword_VD = arguments.out(dword),
                                                   .dposition_PD = arguments.out(dposition),
                                                   .dsegment_GD = arguments.out(dsegment),
                                                   .dgamma_D = arguments.out(dgamma),
                                                   .dbeta_D = arguments.out(dbeta)});
    arguments.fetch();
  }

  const TestTensor<std::int32_t> ids_{{T}, {3, 6, 0, 3, 5, 3, 6, 2, 4}};
  // The same, by word.
  const TestTensor<std::int32_t> entries_{{6}, {0, 2, 3, 4, 5, 6}};
  const TestTensor<std::int32_t> starts_{{7}, {0, 1, 2, 5, 6, 7, 9}};
  const TestTensor<std::int32_t> rows_{{T}, {2, 7, 0, 3, 5, 8, 4, 1, 6}};
  const TestTensor<std::int32_t> zeros_{{T}};
  TestTensor<float> words_ = rounded(random_tensor({V, D}, 1), device());
  TestTensor<float> position_ = rounded(random_tensor({1, D}, 2), device());
  TestTensor<float> gamma_ = random_tensor({D}, 3);
  TestTensor<float> dy_ = rounded(random_tensor({T, D}, 4), device());
  TestTensor<float> z_{{T, D}}, y_{{T, D}}, mean_{{T}}, inverse_deviation_{{T}};
};
INSTANTIATE_TEST_SUITE_P(Embedding, EmbeddingOn, kDevices, device_of);

TEST_P(EmbeddingOn, ForwardTakesWordsThatWereLookedUpBefore) {
  const OpContext context = EmbeddingOn::context();
  {
    Arguments arguments(context);
    kernels::embedding_forward(context.stream(), bind_forward(arguments));
    arguments.fetch();
  }
  const TestTensor<float> z = z_;
  const TestTensor<float> y = y_;
  for (std::int64_t row = 0; row < T; ++row) {
    const std::int64_t id = ids_.values()[static_cast<std::size_t>(row)];
    std::copy_n(words_.values().begin() + id * D, D, z_.values().begin() + row * D);
  }
  Arguments arguments(context);
  kernels::EmbeddingForward forward = bind_forward(arguments);
  forward.id_T = {};
  forward.word_VD = {};
  forward.looked_up_TD = forward.z_TD;
  kernels::embedding_forward(context.stream(), forward);
  arguments.fetch();
  EXPECT_EQ(z_, z);
  EXPECT_EQ(y_, y);
}

TEST_P(EmbeddingOn, BackwardOfASliceAddsToItsWordsAlone) {
  const OpContext context = EmbeddingOn::context();
  {
    Arguments arguments(context);
    kernels::embedding_forward(context.stream(), bind_forward(arguments));
    arguments.fetch();
  }
  TestTensor<float> whole({V, D}, 0.5F);
  backward(context, {}, whole);
  std::vector<float> together;
  for (const auto& [begin, end] : {std::pair(0, 3), std::pair(3, 4), std::pair(4, 7)}) {
    TestTensor<float> slice({end - begin, D}, 0.5F);
    backward(context, {.first = begin, .whole = V}, slice);
    together.insert(together.end(), slice.values().begin(), slice.values().end());
  }
  EXPECT_EQ(together, whole.values());
}

}  // namespace
}  // namespace plenum::ops
