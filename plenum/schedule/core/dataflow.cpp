#include "plenum/schedule/core/dataflow.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/schedule/core/value_kinds.h"

namespace plenum::schedule {

Dataflow::Dataflow(const Schedule& schedule)
    : schedule_(schedule),
      layers_(schedule.problem),
      num_micro_batches_(schedule.problem.num_micro_batches),
      holders_(schedule.num_stages()) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    all_ranks_.push_back(Rank::at(rank));
    for (const StageId stage : schedule.ranks[rank].stages) holders_[stage.index()].push_back(Rank::at(rank));
  }
  if (schedule.problem.has_tied_parameters) {
    std::set_union(holders_.front().begin(), holders_.front().end(), holders_.back().begin(),
                   holders_.back().end(), std::back_inserter(tied_ranks_));
  }
  find_runners();
  find_segments();
  find_buckets();
  if (schedule.problem.has_partial_curvature) find_partial_curvature();
  lay_out();
}

void Dataflow::find_runners() {
  runners_.assign(schedule_.num_stages() * num_micro_batches_, Rank::none());
  ranks_.resize(schedule_.ranks.size());
  for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
    std::vector<StageBlock>& held = ranks_[rank].stages;
    for (const StageId stage : schedule_.ranks[rank].stages) held.push_back({.stage = stage});
    for (const LaneProgram& lane : schedule_.ranks[rank].lanes) {
      for (const Action& action : lane.actions()) {
        has_exchange_ |= action.type == ActionType::ExchangeData;
        max_pieces_ = std::max<std::uint32_t>(max_pieces_, action.num_pieces);
        max_age_ = std::max<std::size_t>(max_age_, action.age);
        if (!traits_of(action.type).has_micro_batch || counts_rounds(action.type)) continue;
        StageBlock& place = *std::find_if(held.begin(), held.end(), [&](const StageBlock& candidate) {
          return candidate.stage == action.stage;
        });
        place.first = std::min(place.first, action.micro_batch);
        place.end = std::max(place.end, MicroBatchId::at(action.micro_batch.index() + 1));
        if (action.type != ActionType::Forward) continue;
        Rank& runner = runners_[action.stage.index() * num_micro_batches_ + action.micro_batch.index()];
        if (runner.is_none()) runner = Rank::at(rank);
      }
    }
    for (StageBlock& place : held) {
      if (place.first.is_none()) place.first = place.end;
    }
  }
}

void Dataflow::find_segments() {
  std::vector<bool> is_border(layers_.total() + 1, false);
  for (const RankProgram& rank : schedule_.ranks) {
    for (const Action& action : rank.lane(Lane::Compute).actions()) {
      if (!traits_of(action.type).has_micro_batch || traits_of(action.type).has_factor) continue;
      is_border[action.first_layer.index()] = true;
      is_border[action.end_layer.index()] = true;
    }
  }
  for (const RankProgram& rank : schedule_.ranks) {
    for (const Action& action : rank.lane(Lane::DataParallel).actions()) {
      if (!counts_rounds(action.type)) continue;
      is_border[action.first_layer.index()] = true;
      is_border[action.end_layer.index()] = true;
    }
  }
  segment_of_layer_.resize(layers_.total());
  for (std::size_t s = 0; s < schedule_.num_stages(); ++s) {
    const StageId stage = StageId::at(s);
    std::uint32_t segment = 0;
    for (std::size_t layer = layers_.first(stage).index(); layer < layers_.end(stage).index(); ++layer) {
      if (layer != layers_.first(stage).index() && is_border[layer]) ++segment;
      segment_of_layer_[layer] = segment;
    }
    num_segments_.push_back(segment + 1);
  }
}

void Dataflow::find_buckets() {
  std::vector<bool> is_border(layers_.total() + 1, false);
  for (const RankProgram& rank : schedule_.ranks) {
    for (const Action& action : rank.lane(Lane::DataParallel).actions()) {
      if (action.type == ActionType::ReduceScatterRound) is_border[action.first_layer.index()] = true;
    }
  }
  bucket_of_layer_.resize(layers_.total());
  for (std::size_t s = 0; s < schedule_.num_stages(); ++s) {
    const StageId stage = StageId::at(s);
    std::uint32_t bucket = 0;
    for (std::size_t layer = layers_.end(stage).index(); layer-- > layers_.first(stage).index();) {
      bucket_of_layer_[layer] = bucket;
      if (is_border[layer]) ++bucket;
    }
  }
}

void Dataflow::find_partial_curvature() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (StageBlock& place : ranks_[rank].stages) {
      for (const Action& action : schedule_.ranks[rank].lane(Lane::Compute).actions()) {
        if (!is_curvature(action.type) || action.stage != place.stage) continue;
        const std::uint32_t side = action.type == ActionType::CurvatureB ? 1 : 0;
        place.curvature_keys.push_back(curvature_key(place, action, action.micro_batch, side));
      }
      std::vector<std::uint64_t>& keys = place.curvature_keys;
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    }
  }
}

void Dataflow::lay_out() {
  const std::uint32_t num_factors = schedule_.problem.num_factors;
  const bool is_partial = schedule_.problem.has_partial_curvature;
  const bool has_all_curvature = schedule_.problem.preconditioner == Preconditioner::Kfac && !is_partial;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankBlock& block = ranks_[rank];
    std::uint64_t next = 0;
    for (StageBlock& place : block.stages) {
      const StageId stage = place.stage;
      const std::uint32_t span = place.span();
      const auto num_layers = static_cast<std::uint32_t>(layers_.count(stage));
      place.micro_batch_stride = kNumWholeKinds + kNumSegmentKinds * num_segments_[stage.index()];
      place.micro_batch_begin = static_cast<std::uint32_t>(next);
      next += std::uint64_t{span} * place.micro_batch_stride;
      place.weight_begin = static_cast<std::uint32_t>(next);
      next += std::uint64_t{span} * num_segments_[stage.index()];
      place.gathered_begin = static_cast<std::uint32_t>(next);
      if (gathers_rounds(stage)) next += std::uint64_t{span} * num_segments_[stage.index()] * 2;
      place.curvature_begin = static_cast<std::uint32_t>(next);
      if (has_all_curvature) next += std::uint64_t{span} * num_layers * num_factors * 2;
      next += place.curvature_keys.size();
      place.layer_begin = static_cast<std::uint32_t>(next);
      next += std::uint64_t{num_layers} * kNumLayerKinds;
      place.factor_begin = static_cast<std::uint32_t>(next);
      next += std::uint64_t{num_layers} * num_factors * (kFirstPiece + max_pieces_ - 1);
    }
    block.rank_begin = static_cast<std::uint32_t>(next);
    next += kNumRankKinds;
    base::require(next <= std::numeric_limits<std::uint32_t>::max(),
                  "the schedule is too large: rank {} has {} values", rank, next);
    block.num_values = static_cast<std::uint32_t>(next);
  }
}

const Dataflow::StageBlock& Dataflow::block(Rank rank, StageId stage) const {
  const std::vector<StageBlock>& stages = ranks_[rank.index()].stages;
  const auto found = std::find_if(stages.begin(), stages.end(),
                                  [stage](const StageBlock& candidate) { return candidate.stage == stage; });
  base::check(found != stages.end(), "the rank must hold the stage: rank={} stage={}", rank.value,
              stage.value);
  return *found;
}

std::uint32_t Dataflow::micro_batch_value(Rank rank, StageId stage, MicroBatchId micro_batch,
                                          std::uint32_t kind, std::uint32_t segment) const {
  const StageBlock& place = block(rank, stage);
  const std::uint32_t local = micro_batch.value - place.first.value;
  const std::uint32_t within =
      kind < kNumWholeKinds ? kind : kNumWholeKinds + segment * kNumSegmentKinds + (kind - kNumWholeKinds);
  return place.micro_batch_begin + local * place.micro_batch_stride + within;
}

std::uint32_t Dataflow::weight_gradient_value(Rank rank, StageId stage, MicroBatchId micro_batch,
                                              std::uint32_t segment) const {
  const StageBlock& place = block(rank, stage);
  return place.weight_begin + segment * place.span() + (micro_batch.value - place.first.value);
}

std::uint32_t Dataflow::gathered_value(Rank rank, StageId stage, MicroBatchId micro_batch, ActionType gather,
                                       std::uint32_t segment) const {
  const StageBlock& place = block(rank, stage);
  const auto local =
      static_cast<std::uint32_t>((micro_batch.value - place.first.value) * num_segments(stage) + segment);
  return place.gathered_begin + 2 * local + (gather == ActionType::GatherBackward ? 1 : 0);
}

std::uint64_t Dataflow::curvature_key(const StageBlock& place, const Action& action, MicroBatchId micro_batch,
                                      std::uint32_t side) const {
  const std::uint64_t local = micro_batch.value - place.first.value;
  const std::uint64_t layer = action.first_layer.value - layers_.first(action.stage).value;
  const std::uint64_t num_layers = layers_.count(action.stage);
  const std::uint64_t map = (local * num_layers + layer) * schedule_.problem.num_factors + action.factor;
  return map * 2 + side;
}

std::optional<std::uint32_t> Dataflow::curvature_value(Rank rank, const Action& action,
                                                       MicroBatchId micro_batch, std::uint32_t side) const {
  const StageBlock& place = block(rank, action.stage);
  const std::uint64_t key = curvature_key(place, action, micro_batch, side);
  if (!schedule_.problem.has_partial_curvature) {
    return place.curvature_begin + static_cast<std::uint32_t>(key);
  }
  const std::vector<std::uint64_t>& keys = place.curvature_keys;
  const auto found = std::lower_bound(keys.begin(), keys.end(), key);
  if (found == keys.end() || *found != key) return std::nullopt;
  return place.curvature_begin + static_cast<std::uint32_t>(found - keys.begin());
}

std::uint32_t Dataflow::layer_value(Rank rank, StageId stage, LayerId layer, std::uint32_t kind) const {
  return block(rank, stage).layer_begin + (layer.value - layers_.first(stage).value) * kNumLayerKinds + kind;
}

std::uint32_t Dataflow::factor_value(Rank rank, StageId stage, LayerId layer, std::uint16_t factor,
                                     std::uint32_t kind) const {
  const std::uint32_t map =
      (layer.value - layers_.first(stage).value) * schedule_.problem.num_factors + factor;
  return block(rank, stage).factor_begin + map * (kFirstPiece + max_pieces_ - 1) + kind;
}

Rank Dataflow::owner(StageId stage, LayerId layer, std::uint16_t factor) const {
  const std::vector<Rank>& ranks = holders_[stage.index()];
  return ranks[owner_index(layer.index() - layers_.first(stage).index(), factor, layers_.count(stage),
                           ranks.size())];
}

bool Dataflow::takes_part_in_tied(Rank rank) const {
  return tied_ranks_.size() > 1 && std::binary_search(tied_ranks_.begin(), tied_ranks_.end(), rank);
}

std::span<const Rank> Dataflow::group(const Action& action) const {
  if (traits_of(action.type).has_stage) return holders_[action.stage.index()];
  return is_of_tied(action.type) ? tied_ranks_ : all_ranks_;
}

Action Dataflow::counterpart(const Action& action) const {
  Action other = action;
  switch (action.type) {
    case ActionType::SendActivation:
      other.type = ActionType::ReceiveActivation;
      ++other.stage.value;
      break;
    case ActionType::ReceiveActivation:
      other.type = ActionType::SendActivation;
      --other.stage.value;
      break;
    case ActionType::SendGradient:
      other.type = ActionType::ReceiveGradient;
      --other.stage.value;
      break;
    case ActionType::ReceiveGradient:
      other.type = ActionType::SendGradient;
      ++other.stage.value;
      break;
    default:
      base::check(false, "only sends and receives have a counterpart: {}", traits_of(action.type).name);
  }
  return other;
}

Rank Dataflow::peer(const Action& action) const {
  const Action other = counterpart(action);
  // Below the first stage the number wraps around to the greatest there is.
  if (other.stage.index() >= schedule_.num_stages()) return Rank::none();
  return runner(other.stage, other.micro_batch);
}

std::uint32_t Dataflow::sent_value(Rank rank, const Action& send) const {
  return micro_batch_value(rank, send.stage, send.micro_batch,
                           send.type == ActionType::SendActivation ? kSentActivation : kSentGradient);
}

/// From the last to the first: a reader that waits for all of them then looks first at the one made last.
template <typename Visit>
void Dataflow::for_each_local_micro_batch(Rank rank, StageId stage, Visit visit) const {
  const StageBlock& place = block(rank, stage);
  for (std::uint32_t m = place.end.value; m > place.first.value; --m) {
    const MicroBatchId micro_batch{m - 1};
    if (runner(stage, micro_batch) == rank) visit(micro_batch);
  }
}

void Dataflow::add_weight_gradients(Rank rank, StageId stage, std::uint32_t segment,
                                    std::vector<ValueRef>& values) const {
  for_each_local_micro_batch(rank, stage, [&](MicroBatchId micro_batch) {
    values.push_back({weight_gradient_value(rank, stage, micro_batch, segment)});
  });
}

MicroBatchId Dataflow::micro_batch_of_round(Rank rank, StageId stage, MicroBatchId round) const {
  const StageBlock& place = block(rank, stage);
  std::uint32_t num_left = round.value;
  for (MicroBatchId micro_batch = place.first; micro_batch < place.end; ++micro_batch.value) {
    if (runner(stage, micro_batch) == rank && num_left-- == 0) return micro_batch;
  }
  return MicroBatchId::none();
}

/// The shards of the gradients of layers [first, end) from the round of a micro-batch.
void Dataflow::add_scattered(Rank rank, StageId stage, MicroBatchId micro_batch, LayerId first, LayerId end,
                             std::vector<ValueRef>& values) const {
  const std::uint32_t last = segment_of(LayerId::at(end.index() - 1));
  for (std::uint32_t segment = segment_of(first); segment <= last; ++segment) {
    values.push_back({micro_batch_value(rank, stage, micro_batch, kScattered, segment)});
  }
}

/// The gradients of layers [first, end), summed over all that contribute.
void Dataflow::add_final_gradients(Rank rank, StageId stage, LayerId first, LayerId end,
                                   std::vector<ValueRef>& values) const {
  if (scatters_rounds(stage)) {
    for_each_local_micro_batch(rank, stage, [&](MicroBatchId micro_batch) {
      add_scattered(rank, stage, micro_batch, first, end, values);
    });
    return;
  }
  if (holders(stage).size() > 1) {
    add_layers(rank, stage, first, end, kReduced, values);
    return;
  }
  const std::uint32_t last = segment_of(LayerId::at(end.index() - 1));
  for (std::uint32_t segment = segment_of(first); segment <= last; ++segment) {
    add_weight_gradients(rank, stage, segment, values);
  }
}

/// The gradients of layers [first, end) as the update uses them.
void Dataflow::add_ready_gradients(Rank rank, StageId stage, LayerId first, LayerId end,
                                   std::vector<ValueRef>& values) const {
  if (schedule_.problem.preconditioner == Preconditioner::None) {
    add_final_gradients(rank, stage, first, end, values);
  } else {
    add_layers(rank, stage, first, end, holders(stage).size() > 1 ? kGathered : kPreconditioned, values);
  }
}

void Dataflow::add_layers(Rank rank, StageId stage, LayerId first, LayerId end, std::uint32_t kind,
                          std::vector<ValueRef>& values) const {
  for (LayerId layer = first; layer < end; ++layer.value) {
    values.push_back({layer_value(rank, stage, layer, kind)});
  }
}

/// What a rank contributes to the gradient of the tied parameter; where its halves are reduced by themselves,
/// to that of the first layers.
void Dataflow::add_tied_gradients(Rank rank, std::vector<ValueRef>& values) const {
  const bool holds_first = std::binary_search(holders({}).begin(), holders({}).end(), rank);
  if (holds_first) add_weight_gradients(rank, {}, 0, values);
  if (!reduces_tied_halves(rank)) add_tied_output_gradients(rank, values);
}

/// To the half that the last layers make.
void Dataflow::add_tied_output_gradients(Rank rank, std::vector<ValueRef>& values) const {
  const StageId last = StageId::at(schedule_.num_stages() - 1);
  if (!std::binary_search(holders(last).begin(), holders(last).end(), rank)) return;
  add_weight_gradients(rank, last, static_cast<std::uint32_t>(num_segments(last)) - 1, values);
}

/// The gradient of the tied parameter, summed over all that contribute. Where both ends lie on one rank there
/// is nothing to reduce, but to wait for.
void Dataflow::add_reduced_tied(Rank rank, std::vector<ValueRef>& values) const {
  if (!schedule_.problem.has_tied_parameters) return;
  if (takes_part_in_tied(rank)) {
    values.push_back({ranks_[rank.index()].rank_begin + kTied});
    if (reduces_tied_halves(rank)) values.push_back({ranks_[rank.index()].rank_begin + kTiedOutput});
  } else {
    add_tied_gradients(rank, values);
  }
}

void Dataflow::add_curvature(Rank rank, const Action& action, std::vector<ValueRef>& values) const {
  const std::size_t num_others = values.size();
  for_each_local_micro_batch(rank, action.stage, [&](MicroBatchId micro_batch) {
    for (const std::uint32_t side : {1u, 0u}) {
      const std::optional<std::uint32_t> value = curvature_value(rank, action, micro_batch, side);
      if (value) values.push_back({*value, action.age});
    }
  });
  if (values.size() > num_others) return;
  // A holder that covers nothing takes part when it is done with the layer, not before the step has come.
  for_each_local_micro_batch(rank, action.stage, [&](MicroBatchId micro_batch) {
    const std::uint32_t segment = segment_of(action.first_layer);
    values.push_back(
        {micro_batch_value(rank, action.stage, micro_batch, kInputGradient, segment), action.age});
  });
}

}  // namespace plenum::schedule
