#include "plenum/plan/make_op.h"

#include <gtest/gtest.h>

namespace plenum::plan {
namespace {

TEST(MakeOp, CountsWhatAProductMultipliesAndMoves) {
  // y [3, 5] = x [3, 2] w [5, 2]^T, counted one by one.
  double flops = 0;
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 5; ++column) {
      for (int i = 0; i < 2; ++i) flops += 2;
    }
  }
  const Op op = make_op(OpKind::ProductForward, 3, 2, 5, 4);
  EXPECT_EQ(op.flops, flops);
  EXPECT_EQ(op.bytes, 4 * (3 * 2 + 5 * 2 + 3 * 5));
  const Op weight = make_op(OpKind::ProductWeightGradient, 3, 2, 5, 2);
  EXPECT_EQ(weight.flops, flops);
  EXPECT_EQ(weight.bytes, 2 * (3 * 2 + 3 * 5) + 4 * 5 * 2);
}

TEST(MakeOp, CountsAttentionBySquaresOfLengths) {
  // Two sequences of 8 and 4 tokens: of mean length (64 + 16) / 12.
  const Op op = make_op(OpKind::AttentionForward, 12, 80.0 / 12, 128, 4);
  EXPECT_DOUBLE_EQ(op.flops, 2 * 2 * (64 + 16) * 128);
  EXPECT_DOUBLE_EQ(make_op(OpKind::AttentionBackward, 12, 80.0 / 12, 128, 4).flops, 2.5 * op.flops);
}

TEST(MakeOp, GivesEveryKindBytes) {
  for (std::size_t kind = 0; kind < kNumOpKinds; ++kind) {
    const Op op = make_op(static_cast<OpKind>(kind), 7, 3, 5, 4);
    EXPECT_GT(op.bytes, 0) << kind;
    EXPECT_GE(op.flops, 0) << kind;
    EXPECT_EQ(op.kind, static_cast<OpKind>(kind));
  }
}

TEST(MakeOp, SetsSizesWithoutUseToOne) {
  const Op update = make_op(OpKind::AdamW, 100, 9, 9, 4);
  EXPECT_EQ(update.in, 1);
  EXPECT_EQ(update.out, 1);
  EXPECT_EQ(update.bytes, 2800);
  EXPECT_EQ(make_op(OpKind::AdamW, 100, 1, 1, 2).bytes, 3000) << "weights that products read are others";
  EXPECT_EQ(make_op(OpKind::Precondition, 9, 3, 5, 4).rows, 1);
}

}  // namespace
}  // namespace plenum::plan
