#pragma once

#include "plenum/plan/op.h"

namespace plenum::plan {

/// The operation of a kind and size, with its FLOPs (those of its products; what works element by element
/// has none) and the bytes of its arguments: activations and weights as products read them take
/// `element_bytes` each, gradients of weights, moments and statistics 4. Sizes that the kind has no use for
/// come back as 1. T rows, D `in`, E `out`:
///
///   kind                    FLOPs        bytes
///   ProductForward          2TDE         e(TD + DE + TE)
///   ProductInputGradient    2TDE         e(TD + DE + TE); D and E are the map's, as in forward
///   ProductWeightGradient   2TDE         e(TD + TE) + 4DE; overwrites dW
///   MlpForward              2TDE         e(TD + DE + 2TE), what backward reads is written, too
///   MlpInputGradient        2TDE         e(TD + DE + 2TE), D and E are those of MlpForward
///   AttentionForward        4TDE         4eTE + TE/16: qkv, context, a statistic for each head of 64
///   AttentionBackward       10TDE        8eTE + TE/16: the same, and gradients of qkv and context
///   VocabularyLossForward   2TDE         e(TD + DE + TE)
///   VocabularyLossBackward  4TDE         e(2TD + DE + 2TE) + 4DE; overwrites dW
///   NormForward             0            4eTD: x, residual, z, y
///   NormBackward            0            4eTD: dy, z, dz, dx
///   EmbeddingForward        0            3eTD: rows of words, z, y
///   EmbeddingBackward       0            4eTD + 8TD: dy, z, dz twice; a row of the table for each row
///   Activation, Gather      0            2eTD
///   ColumnSums, Fill        0            eTD
///   AdamW                   0            28T, and eT where products read other weights (e < 4)
///   Lamb                    0            40T, and the same: it goes over everything twice
///   SquareGradient          0            4T
///   SecondMoment            TD(D + 1)    eTD + 4D(D + 1): half of the moment, read and written
///   Inverse                 TD^3         8TD^2
///   Precondition            2DE(D + E)   4(D^2 + E^2 + 2DE)
///   Orthonormalise          4TD^3        8TD^2: each row without those before it, twice
Op make_op(OpKind kind, double rows, double in, double out, double element_bytes);

}  // namespace plenum::plan
