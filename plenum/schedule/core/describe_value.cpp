#include <algorithm>

#include <fmt/format.h>

#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/value_kinds.h"

namespace plenum::schedule {

/// Of what a stage has of a micro-batch.
std::string Dataflow::describe_of_micro_batch(const StageBlock& held, std::uint32_t value_index) const {
  static constexpr const char* kWholeNames[] = {"the input", "the output gradient", "the sent activation",
                                                "the sent gradient"};
  static constexpr const char* kSegmentNames[] = {"the output", "the saved activations", "the input gradient",
                                                  "the reduced gradient"};
  const auto of_segment = [&](const char* what, std::uint32_t segment, std::uint32_t micro_batch) {
    std::size_t layer = layers_.first(held.stage).index();
    while (segment_of(LayerId::at(layer)) != segment) ++layer;
    return fmt::format("{} of stage {} from layer {} for micro-batch {}", what, held.stage.value, layer,
                       micro_batch);
  };
  if (value_index >= held.gathered_begin) {
    const std::uint32_t offset = (value_index - held.gathered_begin) / 2;
    const auto stride = static_cast<std::uint32_t>(num_segments(held.stage));
    const bool is_forward = (value_index - held.gathered_begin) % 2 == 0;
    return of_segment(is_forward ? "the parameters for the forward" : "the parameters for the backward",
                      offset % stride, held.first.value + offset / stride);
  }
  if (value_index >= held.weight_begin) {
    const std::uint32_t offset = value_index - held.weight_begin;
    return of_segment("the weight gradient", offset / held.span(), held.first.value + offset % held.span());
  }
  const std::uint32_t offset = value_index - held.micro_batch_begin;
  const std::uint32_t micro_batch = held.first.value + offset / held.micro_batch_stride;
  const std::uint32_t kind = offset % held.micro_batch_stride;
  if (kind < kNumWholeKinds) {
    return fmt::format("{} of stage {} for micro-batch {}", kWholeNames[kind], held.stage.value, micro_batch);
  }
  return of_segment(kSegmentNames[(kind - kNumWholeKinds) % kNumSegmentKinds],
                    (kind - kNumWholeKinds) / kNumSegmentKinds, micro_batch);
}

/// Of what a stage has of a layer or of one of its linear maps.
std::string Dataflow::describe_of_layer(const StageBlock& held, std::uint32_t value_index) const {
  static constexpr const char* kLayerNames[] = {
      "the reduced gradient",        "the accumulated factor",
      "the preconditioned gradient", "the gathered preconditioned gradient",
      "the squares of the gradient", "the moments of the update",
      "the norms of the tensors",    "the update",
      "the gathered parameters"};
  const std::size_t first_layer = layers_.first(held.stage).index();
  const std::uint32_t num_factors = schedule_.problem.num_factors;
  if (value_index < held.layer_begin) {
    const std::uint32_t index = value_index - held.curvature_begin;
    const std::uint64_t key = schedule_.problem.has_partial_curvature ? held.curvature_keys[index] : index;
    const std::uint64_t map = key / 2;
    const std::uint64_t num_layers = layers_.count(held.stage);
    return fmt::format("curvature {} of layer {}, factor {}, for micro-batch {}", key % 2 == 0 ? 'A' : 'B',
                       first_layer + map / num_factors % num_layers, map % num_factors,
                       held.first.value + map / num_factors / num_layers);
  }
  if (value_index < held.factor_begin) {
    const std::uint32_t offset = value_index - held.layer_begin;
    return fmt::format("{} of layer {}", kLayerNames[offset % kNumLayerKinds],
                       first_layer + offset / kNumLayerKinds);
  }
  const std::uint32_t stride = kFirstPiece + max_pieces_ - 1;
  const std::uint32_t offset = value_index - held.factor_begin;
  const std::uint32_t map = offset / stride;
  const std::uint32_t kind = offset % stride;
  const std::string what = kind == kCurvature ? "the reduced curvature"
                           : kind == kInverse ? "the inverse"
                                              : fmt::format("piece {} of the inverse", kind - kFirstPiece);
  return fmt::format("{} of layer {}, factor {}", what, first_layer + map / num_factors, map % num_factors);
}

std::string Dataflow::describe(Rank rank, std::uint32_t value_index) const {
  static constexpr const char* kRankNames[] = {"the agreement of all ranks",
                                               "the gradient of the tied parameter",
                                               "the rows of the tied parameter that are read",
                                               "the last layers' gradient of the tied parameter",
                                               "the gathered tied parameter",
                                               "the exchanged data"};
  const RankBlock& place = ranks_[rank.index()];
  if (value_index >= place.rank_begin) return kRankNames[value_index - place.rank_begin];
  const auto held =
      std::find_if(place.stages.rbegin(), place.stages.rend(),
                   [&](const StageBlock& candidate) { return candidate.micro_batch_begin <= value_index; });
  return value_index < held->curvature_begin ? describe_of_micro_batch(*held, value_index)
                                             : describe_of_layer(*held, value_index);
}

}  // namespace plenum::schedule
