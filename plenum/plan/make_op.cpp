#include "plenum/plan/make_op.h"

namespace plenum::plan {
namespace {

constexpr double kHeadWidth = 64;  ///< of all BERTs: attention keeps a statistic for each row and head

struct Amount {
  double flops = 0;
  double bytes = 0;
};

Amount of_products(OpKind kind, double T, double D, double E, double e) {
  switch (kind) {
    case OpKind::ProductWeightGradient:
      return {2 * T * D * E, e * (T * D + T * E) + 4 * D * E};
    case OpKind::MlpForward:
    case OpKind::MlpInputGradient:
      return {2 * T * D * E, e * (T * D + D * E + 2 * T * E)};
    case OpKind::AttentionForward:
      return {4 * T * D * E, e * 4 * T * E + 4 * T * E / kHeadWidth};
    case OpKind::AttentionBackward:
      return {10 * T * D * E, e * 8 * T * E + 4 * T * E / kHeadWidth};
    case OpKind::VocabularyLossBackward:
      return {4 * T * D * E, e * (2 * T * D + D * E + 2 * T * E) + 4 * D * E};
    case OpKind::SecondMoment:
      return {T * D * (D + 1), e * T * D + 4 * D * (D + 1)};
    case OpKind::Inverse:
      return {T * D * D * D, 8 * T * D * D};
    case OpKind::Precondition:
      return {2 * D * E * (D + E), 4 * (D * D + E * E + 2 * D * E)};
    case OpKind::Orthonormalise:
      return {4 * T * D * D * D, 8 * T * D * D};
    default:  // plain products
      return {2 * T * D * E, e * (T * D + D * E + T * E)};
  }
}

/// Bytes of what works element by element, for each of its elements.
double bytes_of_element(OpKind kind, double e) {
  const double compute_weight = e < 4 ? e : 0;
  switch (kind) {
    case OpKind::NormForward:
    case OpKind::NormBackward:
      return 4 * e;
    case OpKind::EmbeddingForward:
      return 3 * e;
    case OpKind::EmbeddingBackward:
      return 4 * e + 8;
    case OpKind::Activation:
    case OpKind::Gather:
      return 2 * e;
    case OpKind::AdamW:
      return 28 + compute_weight;
    case OpKind::Lamb:
      return 40 + compute_weight;
    case OpKind::SquareGradient:
      return 4;
    default:  // ColumnSums, Fill
      return e;
  }
}

/// Which of the sizes a kind has a use for.
struct Uses {
  bool rows = true;
  bool in = true;
  bool out = false;
  bool is_element_wise = false;
};

Uses uses_of(OpKind kind) {
  switch (kind) {
    case OpKind::ProductForward:
    case OpKind::ProductInputGradient:
    case OpKind::ProductWeightGradient:
    case OpKind::MlpForward:
    case OpKind::MlpInputGradient:
    case OpKind::AttentionForward:
    case OpKind::AttentionBackward:
    case OpKind::VocabularyLossForward:
    case OpKind::VocabularyLossBackward:
      return {.out = true};
    case OpKind::SecondMoment:
    case OpKind::Inverse:
    case OpKind::Orthonormalise:
      return {};
    case OpKind::Precondition:
      return {.rows = false, .out = true};
    case OpKind::AdamW:
    case OpKind::Lamb:
    case OpKind::SquareGradient:
      return {.in = false, .is_element_wise = true};
    default:
      return {.is_element_wise = true};
  }
}

}  // namespace

Op make_op(OpKind kind, double rows, double in, double out, double element_bytes) {
  const Uses uses = uses_of(kind);
  Op op{.kind = kind, .rows = uses.rows ? rows : 1, .in = uses.in ? in : 1, .out = uses.out ? out : 1};
  if (uses.is_element_wise) {
    op.bytes = bytes_of_element(kind, element_bytes) * op.rows * op.in;
    return op;
  }
  const Amount amount = of_products(kind, op.rows, op.in, op.out, element_bytes);
  op.flops = amount.flops;
  op.bytes = amount.bytes;
  return op;
}

}  // namespace plenum::plan
