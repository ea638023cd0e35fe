#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plenum::plan {

/// Work of one kind is alike in what it computes and moves; how close it comes to what a device can do is
/// measured for each kind apart.
enum class OpKind : std::uint8_t {
  ProductForward,        ///< y = x W^T + b
  ProductInputGradient,  ///< dx = dy W
  ProductWeightGradient,
  MlpForward,        ///< the first product of an MLP and its GELU
  MlpInputGradient,  ///< back through the second product of an MLP and its GELU
  AttentionForward,  ///< rows are tokens, `in` their mean length (squares of lengths / tokens), `out` heads x
                     ///< width
  AttentionBackward,      ///< likewise
  VocabularyLossForward,  ///< rows are masked tokens, `in` the width, `out` the words
  VocabularyLossBackward,
  NormForward,  ///< layer norm with dropout and residual; rows x `in`
  NormBackward,
  EmbeddingForward,  ///< sum of rows of tables and its norm; rows x `in`
  EmbeddingBackward,
  Activation,  ///< GELU or its derivative by itself; rows x `in`
  ColumnSums,  ///< bias gradients; rows x `in`
  Gather,      ///< rows that are copied, gathered or scattered; rows x `in`
  Fill,        ///< zeros; rows x `in`
  AdamW,       ///< the update of `rows` parameters
  Lamb,
  SquareGradient,  ///< sum of squares of `rows` numbers
  SecondMoment,    ///< K-FAC: a product x^T x of rows x `in`
  Inverse,         ///< K-FAC: of `rows` matrices of `in` x `in`
  Precondition,    ///< K-FAC: two products, of an `out` x `in` gradient
  Orthonormalise,  ///< SOAP: rows of `rows` matrices of `in` x `in`
};
inline constexpr std::size_t kNumOpKinds = static_cast<std::size_t>(OpKind::Orthonormalise) + 1;

/// "product_forward": what files call it.
std::string_view op_kind_name(OpKind kind);
std::optional<OpKind> op_kind_named(std::string_view name);

/// One operation, as far as its time goes. What `rows`, `in` and `out` are is said by its kind; a size that a
/// kind has no use for is 1.
struct Op {
  OpKind kind = OpKind::ProductForward;
  double rows = 1;
  double in = 1;
  double out = 1;
  double flops = 0;  ///< multiplications and additions of its products: what goes element by element has none
  double bytes = 0;  ///< of its arguments, each read or written once
  double count = 1;  ///< how many of them there are, one after another

  friend bool operator==(const Op&, const Op&) = default;
};

}  // namespace plenum::plan
