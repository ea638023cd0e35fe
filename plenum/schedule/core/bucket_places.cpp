#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/value_kinds.h"

namespace plenum::schedule {

// The places that buckets take in turn: of gradients until they are reduced, and of gathered parameters.

/// The micro-batch that a rank runs before another; none before its first.
MicroBatchId Dataflow::micro_batch_before(Rank rank, StageId stage, MicroBatchId micro_batch) const {
  MicroBatchId before = MicroBatchId::none();
  for (MicroBatchId other = block(rank, stage).first; other < micro_batch; ++other.value) {
    if (runner(stage, other) == rank) before = other;
  }
  return before;
}

/// What must have left the place of the gradients that a backward makes.
void Dataflow::add_gradient_place(Rank rank, const Action& backward, std::vector<ValueRef>& values) const {
  const StageId stage = backward.stage;
  if (!scatters_rounds(stage)) return;
  const std::uint32_t first_bucket = bucket(LayerId::at(backward.end_layer.index() - 1));
  const std::uint32_t last_bucket = bucket(backward.first_layer);
  if (first_bucket == 0) {
    const MicroBatchId before = micro_batch_before(rank, stage, backward.micro_batch);
    if (!before.is_none())
      add_scattered(rank, stage, before, layers_.first(stage), layers_.end(stage), values);
  }
  for (LayerId layer = layers_.first(stage); layer < layers_.end(stage); ++layer.value) {
    const std::uint32_t freed = bucket(layer) + kBucketPlaces;
    if (freed >= first_bucket && freed <= last_bucket)
      add_scattered(rank, stage, backward.micro_batch, layer, LayerId::at(layer.index() + 1), values);
  }
}

bool Dataflow::needs_gather(Rank rank, const Action& gather, std::uint32_t bucket) const {
  const std::uint32_t num_in_turn = first_layers_bucket(gather.stage);
  if (bucket >= num_in_turn) return false;
  if (gather.type == ActionType::GatherBackward) return bucket >= kBucketPlaces;
  const MicroBatchId micro_batch = micro_batch_of_round(rank, gather.stage, gather.micro_batch);
  return bucket + kBucketPlaces < num_in_turn ||
         micro_batch_before(rank, gather.stage, micro_batch).is_none();
}

/// The parameters of a pass's layers, as the last gather into their place left them.
void Dataflow::add_parameters(Rank rank, const Action& pass, std::vector<ValueRef>& values) const {
  const StageId stage = pass.stage;
  const std::uint32_t num_in_turn = first_layers_bucket(stage);
  std::uint32_t last_segment = segment_of(pass.first_layer) + 1;
  for (LayerId layer = pass.first_layer; layer < pass.end_layer; ++layer.value) {
    const std::uint32_t own = bucket(layer);
    if (own == num_in_turn) {
      values.push_back({layer_value(rank, stage, layer, kParameters)});
      continue;
    }
    if (layer != pass.first_layer && segment_of(layer) == last_segment) continue;
    last_segment = segment_of(layer);
    ActionType gather =
        pass.type == ActionType::Forward ? ActionType::GatherForward : ActionType::GatherBackward;
    MicroBatchId micro_batch = pass.micro_batch;
    while (true) {
      if (gather == ActionType::GatherBackward) {
        if (own >= kBucketPlaces) break;
        gather = ActionType::GatherForward;
      }
      const MicroBatchId before = micro_batch_before(rank, stage, micro_batch);
      if (own + kBucketPlaces < num_in_turn || before.is_none()) break;
      micro_batch = before;
      gather = ActionType::GatherBackward;
    }
    values.push_back({gathered_value(rank, stage, micro_batch, gather, last_segment)});
  }
}

/// The passes that must be done with what lies in the places of the layers that are gathered.
void Dataflow::add_parameter_place(Rank rank, const Action& gather, std::vector<ValueRef>& values) const {
  const StageId stage = gather.stage;
  const MicroBatchId micro_batch = micro_batch_of_round(rank, stage, gather.micro_batch);
  if (micro_batch.is_none()) return;
  const bool is_forward = gather.type == ActionType::GatherForward;
  const MicroBatchId before = micro_batch_before(rank, stage, micro_batch);
  const std::uint32_t first_bucket = bucket(LayerId::at(gather.end_layer.index() - 1));
  const std::uint32_t last_bucket = bucket(gather.first_layer);
  const auto add = [&](MicroBatchId of, MicroBatchKind kind, LayerId layer) {
    values.push_back({micro_batch_value(rank, stage, of, kind, segment_of(layer))});
  };
  for (LayerId layer = layers_.first(stage); layer < layers_.end(stage); ++layer.value) {
    const std::uint32_t had = bucket(layer);
    if (had == first_layers_bucket(stage)) continue;
    // Forwards come from the first layers, whose buckets count highest, backwards from the last.
    const bool is_freed = is_forward
                              ? had >= first_bucket + kBucketPlaces && had <= last_bucket + kBucketPlaces
                              : had + kBucketPlaces >= first_bucket && had + kBucketPlaces <= last_bucket;
    if (!is_freed) continue;
    add(micro_batch, is_forward ? kOutput : kInputGradient, layer);
    if (is_forward && !before.is_none()) add(before, kInputGradient, layer);
  }
}

}  // namespace plenum::schedule
