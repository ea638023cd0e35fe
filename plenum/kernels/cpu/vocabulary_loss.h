#pragma once

#include "plenum/kernels/vocabulary_loss.h"

namespace plenum::kernels::cpu {

/// Words of a tile: of the 512 positions that are worked on at a time its logits take 1 MB, which stay in a
/// second-level cache.
inline constexpr std::int64_t kVocabularyTile = 512;

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args);
void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args);
std::size_t vocabulary_loss_scratch_bytes();

}  // namespace plenum::kernels::cpu
