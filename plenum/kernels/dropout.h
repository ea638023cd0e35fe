#pragma once

#include <cstdint>

#include "plenum/base/philox.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::kernels {

/// Where in a model dropout is applied. Part of every random number's identity: never renumber.
enum class DropoutSite : std::uint32_t {
  Embedding = 0,
  AttentionWeights = 1,
  AttentionOutput = 2,
  MlpOutput = 3,
  HeadInput = 4,  ///< what the output map of a head reads; with layer 0, where no other site has its number
};

/// Dropout by identity: whether an activation is dropped is a function of (seed, epoch, sample, position,
/// layer, site, channel), wherever the token lies and whichever rank holds it; masks are computed again where
/// they are needed. Only attention's bits may be kept, where drawing them again takes longer than reading.
///
/// A decision takes one random byte: 16 neighbouring channels c share RandomFunction(seed, Dropout,
/// epoch)(sample, position, 4 * layer + site, c / 16), and channel c is dropped if byte c % 16 (in memory
/// order, little-endian words) is below `threshold`. For attention weights, position is the query's and the
/// channel of key position k and head h of the model is h * 2^20 + k. What stays is multiplied by 256 / (256
/// - threshold), so the expectation is exact for the rate threshold / 256.
struct Dropout {
  std::uint32_t threshold = 0;  ///< of 256; 0: nothing is dropped
  base::PhiloxKey key = {};     ///< of RandomFunction(seed, Purpose::Dropout, epoch)
  std::uint32_t layer = 0;      ///< of the model, from 0; below 2^14. Embedding and heads have the layer 0
  DropoutSite site = DropoutSite::Embedding;
  /// Of attention weights: the head of the model that is head 0 here, where ranks divide the heads.
  std::uint32_t first_head = 0;

  bool is_on() const { return threshold > 0; }
  float scale() const { return 256.0F / static_cast<float>(256 - threshold); }
  std::uint32_t layer_and_site() const { return 4 * layer + static_cast<std::uint32_t>(site); }
};

/// The threshold nearest to a rate in [0, 1), at most 255.
std::uint32_t dropout_threshold(double rate);

/// Which token of which sample every row holds.
struct RowIdentities {
  tensor::ConstTensorView sample_T;    ///< Int64, below 2^48; of padding anything
  tensor::ConstTensorView position_T;  ///< Int32, within the sample
};

}  // namespace plenum::kernels
