#include <algorithm>
#include <limits>

#include "plenum/base/check.h"

#include "tests/pipeline/toy_program.h"

namespace plenum::pipeline {

using base::check;
using schedule::Action;
using schedule::ActionType;

comm::ConstElements ToyProgram::outgoing(const ActionRun& run) {
  MicroBatchRecord& record = record_of(run.action, run.step);
  const bool is_activation = run.action.type == ActionType::SendActivation;
  bool& has_sent = is_activation ? record.has_sent_activation : record.has_sent_gradient;
  check(!has_sent, "sent twice");
  has_sent = true;
  check(is_activation ? record.has_output : record.layers.front().has_errors,
        "what is to be sent is not there");
  const schedule::Tenant sent = schedule::message_tenant(run.action, dataflow_.layers());
  return comm::elements_of(
      std::span<const double>(memory_.at(sent, run.step)).first(record.tokens.size() * model_.width));
}

comm::Elements ToyProgram::incoming(const ActionRun& run) {
  const bool is_activation = run.action.type == ActionType::ReceiveActivation;
  MicroBatchRecord& record = is_activation ? open_record(run.action.stage, run.action.micro_batch, run.step)
                                           : record_of(run.action, run.step);
  check(is_activation || !record.has_output_gradient, "the output gradient comes twice");
  memory_.begin(run);
  const schedule::Tenant received = schedule::message_tenant(run.action, dataflow_.layers());
  return comm::elements_of(memory_.at(received, run.step).first(record.tokens.size() * model_.width));
}

/// Calls visit(block, holder) for what a collective over layers packs, part of one holder after another.
template <typename Visit>
void ToyProgram::for_each_packed(const Action& action, Visit visit) {
  HeldStage& stage = held(action.stage);
  for (std::size_t holder = 0; holder < stage.num_holders; ++holder) {
    for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
      for (Block& block : layer_of(stage, layer).blocks) {
        if (block.owner == holder && is_packed(action, block)) visit(block, holder);
      }
    }
  }
}

bool ToyProgram::is_packed(const Action& action, const Block& block) const {
  if (action.type == ActionType::GatherPreconditioned) return block.kind == ParameterKind::Weight;
  return !block.is_tied;
}

void ToyProgram::pack(const Action& action, Select what) {
  buffer_.clear();
  counts_.assign(held(action.stage).num_holders, 0);
  for_each_packed(action, [&](Block& block, std::size_t holder) {
    const Values& values = block.*what;
    buffer_.insert(buffer_.end(), values.begin(), values.end());
    counts_[holder] += values.size();
  });
}

void ToyProgram::unpack(const Action& action, Select what) {
  auto next = buffer_.begin();
  for_each_packed(action, [&](Block& block, std::size_t) {
    Values& values = block.*what;
    std::copy_n(next, values.size(), values.begin());
    next += static_cast<std::ptrdiff_t>(values.size());
  });
}

template <typename Visit>
void ToyProgram::for_each_tensor(const Action& action, Visit visit) {
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    for (Block& block : layer_of(held(action.stage), layer).blocks) {
      if (!is_shared(block)) visit(block);
    }
  }
}

void ToyProgram::fill_tensor_norms(const ActionRun& run) {
  const Action& action = run.action;
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    const LayerState& state = layer_of(held(action.stage), layer);
    check(state.moments_step == run.step, "norms are summed before there are moments");
    check(state.norms_step != run.step, "norms are summed twice");
  }
  buffer_.clear();
  for_each_tensor(action, [&](const Block& block) { buffer_.push_back(block.own_squares); });
}

/// Both halves, or the one that the action is of.
void ToyProgram::fill_tied_gradient(const ActionRun& run) {
  buffer_.assign(model_.vocabulary * model_.width, 0.0);
  for (const HeldStage& stage : stages_) {
    for (const LayerState& layer : stage.layers) {
      for (const Block& block : layer.blocks) {
        const bool is_output = block.kind == ParameterKind::Decoder;
        const bool is_of_action =
            !dataflow_.reduces_tied_halves(rank_) || is_output == (run.action.type != ActionType::ReduceTied);
        if (!block.is_tied || !is_of_action) continue;
        check(layer.gradient_step == run.step && layer.num_contributions == stage.records.size(),
              "an incomplete gradient of the tied parameter is reduced");
        for (std::size_t i = 0; i < buffer_.size(); ++i) buffer_[i] += block.gradient[i];
      }
    }
  }
}

/// One number of each holder.
PartitionedElements ToyProgram::tied_rows(const ActionRun& run) {
  check(tied_rows_step_ != run.step, "rows of the tied parameter gathered twice");
  counts_.assign(dataflow_.group(run.action).size(), 1);
  buffer_.assign(counts_.size(), static_cast<double>(run.step));
  return {comm::elements_of(std::span(buffer_)), counts_};
}

/// All of the table is its owner's.
PartitionedElements ToyProgram::to_partition_tied(const ActionRun& run) {
  const HeldStage& stage = held({});
  const Block& table = stage.layers.front().blocks[2 * model_.maps_per_layer];
  counts_.assign(stage.num_holders, 0);
  counts_[table.owner] = table.parameter.size();
  if (run.action.type == ActionType::GatherTied) {
    check(stage.layers.front().updated_step == run.step && stage.layers.back().updated_step == run.step,
          "gathered before the update");
    check(tied_whole_step_ != run.step, "gathered twice");
    buffer_ = table.parameter;
  } else {
    check(tied_output_step_ != run.step, "a half of the tied parameter reduced twice");
    fill_tied_gradient(run);
  }
  return {comm::elements_of(std::span(buffer_)), counts_};
}

void ToyProgram::communicated_tied(const ActionRun& run) {
  HeldStage& stage = held({});
  Block& table = stage.layers.front().blocks[2 * model_.maps_per_layer];
  if (run.action.type == ActionType::GatherTied) {
    table.parameter = buffer_;
    stage.layers.back().blocks.back().parameter = buffer_;
    tied_whole_step_ = run.step;
    return;
  }
  tied_output_gradient_ = buffer_;
  tied_output_step_ = run.step;
  if (table.owner == stage.holder) return;
  // What belongs to another is not to be used.
  std::ranges::fill(tied_output_gradient_, std::numeric_limits<double>::quiet_NaN());
}

comm::Elements ToyProgram::to_reduce(const ActionRun& run) {
  const Action& action = run.action;
  switch (action.type) {
    case ActionType::ReduceGradient: {
      HeldStage& stage = held(action.stage);
      for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
        const LayerState& state = layer_of(stage, layer);
        check(state.gradient_step == run.step && state.num_contributions == stage.records.size(),
              "an incomplete gradient is reduced");
        check(state.reduced_step != run.step, "reduced twice");
      }
      pack(action, &Block::gradient);
      break;
    }
    case ActionType::ReduceTied:
      check(tied_step_ != run.step, "tied parameter reduced twice");
      fill_tied_gradient(run);
      break;
    case ActionType::ReduceTiedOutput:
      check(tied_output_step_ != run.step, "a half of the tied parameter reduced twice");
      fill_tied_gradient(run);
      break;
    case ActionType::ReduceCurvature: {
      HeldStage& stage = held(action.stage);
      MapState& map = map_of(stage, action);
      check(map.curvature.find(run.data_step()) == nullptr, "curvature reduced twice");
      Curvature& curvature = map.curvature.open(run.data_step());
      curvature.both = sum_curvature(stage, action, run.data_step());
      return comm::elements_of(std::span(curvature.both));
    }
    case ActionType::ReduceTensorNorms:
      fill_tensor_norms(run);
      break;
    default:
      check(agreed_step_ != run.step, "agreed twice");
      fill_agreement(run.step);
  }
  return comm::elements_of(std::span(buffer_));
}

PartitionedElements ToyProgram::to_partition(const ActionRun& run) {
  const Action& action = run.action;
  if (action.type == ActionType::GatherTiedRows) return tied_rows(run);
  if (schedule::is_of_tied(action.type)) return to_partition_tied(run);
  HeldStage& stage = held(action.stage);
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    const LayerState& state = layer_of(stage, layer);
    switch (action.type) {
      case ActionType::ReduceScatterGradient:
        check(state.gradient_step == run.step && state.num_contributions == stage.records.size(),
              "an incomplete gradient is reduced");
        check(state.reduced_step != run.step, "reduced twice");
        break;
      case ActionType::ReduceScatterRound:
        check(state.flight_of == dataflow_.micro_batch_of_round(rank_, action.stage, action.micro_batch),
              "the gradient of the round is not there");
        check(state.reduced_step != run.step, "reduced twice");
        break;
      case ActionType::GatherPreconditioned:
        check(state.preconditioned_step == run.step, "gathered before it is preconditioned");
        check(state.gathered_step != run.step, "gathered twice");
        break;
      default:
        check_gather(run, state);
    }
  }
  if (dataflow_.gathers_rounds(action.stage) && schedule::is_gather(action.type))
    take_place_of_parameters(action);
  pack(action, action.type == ActionType::ReduceScatterGradient  ? &Block::gradient
               : action.type == ActionType::ReduceScatterRound   ? &Block::flight
               : action.type == ActionType::GatherPreconditioned ? &Block::preconditioned
                                                                 : &Block::parameter);
  return {comm::elements_of(std::span(buffer_)), counts_};
}

void ToyProgram::check_gather(const ActionRun& run, const LayerState& state) const {
  const bool is_of_last_step = dataflow_.gathers_rounds(run.action.stage);
  check(is_of_last_step ? run.step == run.first_step || state.updated_step + 1 == run.step
                        : state.updated_step == run.step,
        "gathered before the update");
  check(state.whole_step != run.step, "gathered twice");
}

/// Whatever lay there is gone when the first byte comes.
void ToyProgram::take_place_of_parameters(const Action& action) {
  HeldStage& stage = held(action.stage);
  for (auto layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    const std::size_t place = place_of_bucket(action.stage, layer);
    if (place == stage.gathered.size() || stage.gathered[place] == dataflow_.bucket(layer)) continue;
    for (auto other = dataflow_.layers().first(action.stage); other < dataflow_.layers().end(action.stage);
         ++other.value) {
      if (stage.gathered[place] != dataflow_.bucket(other)) continue;
      LayerState& left = layer_of(stage, other.index());
      left.whole_step = kNever;
      for (Block& block : left.blocks)
        block.gathered.assign(block.gathered.size(), std::numeric_limits<double>::quiet_NaN());
    }
    stage.gathered[place] = dataflow_.bucket(layer);
  }
}

void ToyProgram::communicated_parameters(const ActionRun& run) {
  const Action& action = run.action;
  unpack(action, dataflow_.gathers_rounds(action.stage) ? &Block::gathered : &Block::parameter);
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer)
    layer_of(held(action.stage), layer).whole_step = run.step;
}

void ToyProgram::communicated(const ActionRun& run) {
  const Action& action = run.action;
  switch (action.type) {
    case ActionType::SendActivation:
    case ActionType::SendGradient:
      memory_.end(run);
      break;
    case ActionType::ReceiveActivation:
      record_of(action, run.step).layers.front().has_input = true;
      break;
    case ActionType::ReceiveGradient:
      record_of(action, run.step).has_output_gradient = true;
      break;
    case ActionType::ReduceTied:
      tied_gradient_ = buffer_;
      tied_step_ = run.step;
      break;
    case ActionType::ReduceTiedOutput:
      tied_output_gradient_ = buffer_;
      tied_output_step_ = run.step;
      break;
    case ActionType::GatherTiedRows:
      tied_rows_step_ = run.step;
      break;
    case ActionType::ReduceScatterTiedOutput:
    case ActionType::GatherTied:
      communicated_tied(run);
      break;
    case ActionType::ReduceCurvature:
      map_of(held(action.stage), action).curvature.find(run.data_step())->is_reduced = true;
      break;
    case ActionType::ReduceScatterRound:
      communicated_round(run);
      break;
    case ActionType::GatherParameters:
    case ActionType::GatherForward:
    case ActionType::GatherBackward:
      communicated_parameters(run);
      break;
    case ActionType::ReduceTensorNorms: {
      std::size_t next = 0;
      for_each_tensor(action, [&](Block& block) { block.tensor_squares = buffer_[next++]; });
      HeldStage& stage = held(action.stage);
      for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer)
        layer_of(stage, layer).norms_step = run.step;
      break;
    }
    case ActionType::Agree:
      take_agreement(run.step);
      break;
    default:
      communicated_gradient(run);
  }
}

void ToyProgram::communicated_gradient(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& stage = held(action.stage);
  const bool gathers_preconditioned = action.type == ActionType::GatherPreconditioned;
  unpack(action, gathers_preconditioned ? &Block::preconditioned : &Block::gradient);
  if (action.type == ActionType::ReduceScatterGradient) {
    // What belongs to others is not to be used.
    for_each_packed(action, [&](Block& block, std::size_t holder) {
      if (holder == stage.holder) return;
      std::fill(block.gradient.begin(), block.gradient.end(), std::numeric_limits<double>::quiet_NaN());
    });
  }
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    (gathers_preconditioned ? state.gathered_step : state.reduced_step) = run.step;
  }
}

/// Adds a round to the shard, and leaves nothing of the gradient that was in flight.
void ToyProgram::communicated_round(const ActionRun& run) {
  const Action& action = run.action;
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  HeldStage& stage = held(action.stage);
  unpack(action, &Block::flight);
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerState& state = layer_of(stage, layer);
    const bool is_first = state.scattered_step != run.step;
    state.scattered_step = run.step;
    state.num_scattered = is_first ? 1 : state.num_scattered + 1;
    if (state.num_scattered == stage.records.size()) state.reduced_step = run.step;
    state.flight_of = schedule::MicroBatchId::none();
    for (Block& block : state.blocks) {
      if (block.is_tied) continue;
      for (std::size_t i = 0; i < block.gradient.size(); ++i) {
        const double before = is_first ? 0 : block.gradient[i];
        block.gradient[i] = block.owner == stage.holder ? before + block.flight[i] : kNothing;
      }
      block.flight.assign(block.flight.size(), kNothing);
    }
    stage.flights[place_of_bucket(action.stage, schedule::LayerId::at(layer))].reset();
  }
}

void ToyProgram::exchange_data(const ActionRun& run, comm::Communicator& ranks) {
  const std::vector<std::int64_t> source(ranks.size(), static_cast<std::int64_t>(run.step));
  std::vector<std::int64_t> destination(ranks.size());
  const std::vector<std::size_t> counts(ranks.size(), 1);
  ranks
      .start_all_to_all(comm::elements_of(std::span(source)), counts,
                        comm::elements_of(std::span(destination)), counts, run.step)
      .wait();
  check(destination == source, "the ranks exchange data of different steps");
  exchanged_step_ = run.step;
}

}  // namespace plenum::pipeline
