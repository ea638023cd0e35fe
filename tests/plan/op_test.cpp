#include "plenum/plan/op.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace plenum::plan {
namespace {

TEST(OpKind, HasANameThatLeadsBackToIt) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kNumOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    EXPECT_FALSE(op_kind_name(kind).empty());
    EXPECT_EQ(op_kind_named(op_kind_name(kind)), kind);
    names.insert(op_kind_name(kind));
  }
  EXPECT_EQ(names.size(), kNumOpKinds);
}

TEST(OpKind, OfTheFilesAreTheNamesOfTheKernels) {
  EXPECT_EQ(op_kind_name(OpKind::ProductForward), "product_forward");
  EXPECT_EQ(op_kind_name(OpKind::VocabularyLossBackward), "vocabulary_loss_backward");
  EXPECT_EQ(op_kind_name(OpKind::ColumnSums), "column_sums");
  EXPECT_EQ(op_kind_name(OpKind::AdamW), "adamw");
  EXPECT_EQ(op_kind_name(OpKind::SquareGradient), "square_gradient");
  EXPECT_EQ(op_kind_name(OpKind::Precondition), "precondition");
  EXPECT_FALSE(op_kind_named("matmul"));
  EXPECT_FALSE(op_kind_named(""));
}

}  // namespace
}  // namespace plenum::plan
