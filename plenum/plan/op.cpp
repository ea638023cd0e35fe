#include "plenum/plan/op.h"

#include <algorithm>

namespace plenum::plan {
namespace {

/// In the order of OpKind.
constexpr std::array<std::string_view, kNumOpKinds> kNames = {
    "product_forward",
    "product_input_gradient",
    "product_weight_gradient",
    "mlp_forward",
    "mlp_input_gradient",
    "attention_forward",
    "attention_backward",
    "vocabulary_loss_forward",
    "vocabulary_loss_backward",
    "norm_forward",
    "norm_backward",
    "embedding_forward",
    "embedding_backward",
    "activation",
    "column_sums",
    "gather",
    "fill",
    "adamw",
    "lamb",
    "square_gradient",
    "second_moment",
    "inverse",
    "precondition",
    "orthonormalise",
};

}  // namespace

std::string_view op_kind_name(OpKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<OpKind> op_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<OpKind>(found - kNames.begin());
}

}  // namespace plenum::plan
