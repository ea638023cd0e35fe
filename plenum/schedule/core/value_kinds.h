#pragma once

#include <cstdint>

namespace plenum::schedule {

// The kinds of values that Dataflow numbers; its own business, shared by its source files.

/// What a rank may have of a stage and micro-batch. The last four exist per segment. Weight gradients, which
/// are read all together, lie apart.
enum MicroBatchKind : std::uint32_t {
  kInput,
  kOutputGradient,
  kSentActivation,
  kSentGradient,
  kOutput,
  kSaved,
  kInputGradient,
  kScattered,
};
inline constexpr std::uint32_t kNumWholeKinds = 4;
inline constexpr std::uint32_t kNumSegmentKinds = 4;

/// What it may have of a layer.
enum LayerValueKind : std::uint32_t {
  kReduced,
  kFactor,
  kPreconditioned,
  kGathered,
  kSquares,
  kMoments,
  kTensorNorms,
  kUpdated,
  kParameters,
  kNumLayerKinds
};

/// What it may have of a linear map, beside unfinished pieces of its inverse.
enum FactorKind : std::uint32_t { kCurvature, kInverse, kFirstPiece };

/// What it may have once.
enum RankValueKind : std::uint32_t {
  kAgreed,
  kTied,
  kTiedRows,       ///< which of its rows the first layers read
  kTiedOutput,     ///< the half of its gradient that the last layers make
  kTiedParameter,  ///< whole, where its update is sharded
  kExchanged,
  kNumRankKinds
};

}  // namespace plenum::schedule
