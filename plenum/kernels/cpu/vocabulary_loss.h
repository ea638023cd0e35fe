#pragma once

#include "plenum/kernels/vocabulary_loss.h"

namespace plenum::kernels::cpu {

using workspace::kVocabularyTile;

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args);
void combine_vocabulary_parts(const tensor::Stream& stream, const VocabularyParts& args);
void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args);

}  // namespace plenum::kernels::cpu
