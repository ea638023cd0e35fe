#include "tests/pipeline/toy_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plenum/base/check.h"

namespace plenum::pipeline {

using base::check;
using schedule::Action;
using schedule::ActionType;
using schedule::LayerId;
using schedule::MicroBatchId;
using schedule::Rank;
using schedule::StageId;
using schedule::TenantKind;

ToyProgram::ToyProgram(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank)
    : ToyProgram(schedule, dataflow, rank, toy_slots(dataflow, rank)) {}

ToyProgram::ToyProgram(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank,
                       schedule::RankSlots slots)
    : schedule_(schedule),
      dataflow_(dataflow),
      rank_(rank),
      model_(toy_model_for(schedule.problem)),
      num_tokens_(static_cast<double>(num_toy_tokens(schedule.problem))),
      coverage_(schedule),
      num_kept_steps_(std::max<std::size_t>(1, schedule.problem.staleness) + 2),
      memory_(dataflow, rank, model_, std::move(slots)) {
  for (const StageId stage : schedule.ranks[rank.index()].stages) add_stage(stage);
  exchanges_data_ = !schedule.ranks[rank.index()].lane(schedule::Lane::Copy).actions().empty();
}

void ToyProgram::add_stage(StageId stage) {
  const std::span<const Rank> holders = dataflow_.holders(stage);
  HeldStage& place = stages_.emplace_back();
  place.stage = stage;
  place.num_holders = holders.size();
  place.holder = static_cast<std::size_t>(std::find(holders.begin(), holders.end(), rank_) - holders.begin());
  const std::size_t first = dataflow_.layers().first(stage).index();
  for (std::size_t layer = 0; layer < dataflow_.layers().count(stage); ++layer) {
    LayerState& state = place.layers.emplace_back();
    for (ToyParameter& parameter : toy_parameters(model_, schedule_.problem, first + layer)) {
      const bool is_table =
          parameter.kind == ParameterKind::Embedding || parameter.kind == ParameterKind::Decoder;
      const std::size_t size = parameter.initial.size();
      state.blocks.push_back(
          {.kind = parameter.kind,
           .map = parameter.map,
           .owner = is_table && dataflow_.shards_tied(rank_)
                        ? holders.size() - 1
                        : schedule::owner_index(layer, parameter.map, dataflow_.layers().count(stage),
                                                holders.size()),
           .is_tied = is_table && schedule_.problem.has_tied_parameters,
           .parameter = std::move(parameter.initial),
           .momentum = Values(size, 0.0),
           .gradient = Values(size, 0.0),
           .preconditioned = {}});
      Block& block = state.blocks.back();
      if (!dataflow_.gathers_rounds(stage) || block.is_tied) continue;
      constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
      block.gathered.assign(size, kNothing);
      block.is_elsewhere = block.owner != place.holder;
      if (block.is_elsewhere) block.parameter.assign(size, kNothing);
    }
    for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
      const std::size_t square = model_.width * model_.width;
      place.maps.push_back({.curvature = StepRing<Curvature>(num_kept_steps_),
                            .inverse = StepRing<Inverse>(num_kept_steps_),
                            .factors = StepRing<Factors>(num_kept_steps_),
                            .accumulated = {Values(square, 0.0), Values(square, 0.0)}});
    }
  }
  for (std::size_t i = 0; i < schedule_.problem.num_micro_batches; ++i) {
    if (dataflow_.runner(stage, MicroBatchId::at(i)) != rank_) continue;
    place.records.emplace(MicroBatchId::at(i), StepRing<MicroBatchRecord>(num_kept_steps_));
  }
}

ToyProgram::HeldStage& ToyProgram::held(StageId stage) {
  return const_cast<HeldStage&>(std::as_const(*this).held(stage));
}

const ToyProgram::HeldStage& ToyProgram::held(StageId stage) const {
  const auto found = std::find_if(stages_.begin(), stages_.end(),
                                  [stage](const HeldStage& candidate) { return candidate.stage == stage; });
  check(found != stages_.end(), "the rank does not hold the stage");
  return *found;
}

LayerState& ToyProgram::layer_of(HeldStage& stage, std::size_t layer) {
  return stage.layers[layer - dataflow_.layers().first(stage.stage).index()];
}

MapState& ToyProgram::map_of(HeldStage& stage, const Action& action) {
  const std::size_t layer = action.first_layer.index() - dataflow_.layers().first(stage.stage).index();
  return stage.maps[layer * model_.maps_per_layer + action.factor];
}

MicroBatchRecord& ToyProgram::open_record(StageId stage, MicroBatchId micro_batch, std::uint64_t step) {
  HeldStage& place = held(stage);
  const auto found = place.records.find(micro_batch);
  check(found != place.records.end(), "another rank runs this micro-batch");
  check(found->second.find(step) == nullptr, "the micro-batch was begun twice");
  MicroBatchRecord& record = found->second.open(step);
  record.tokens = toy_tokens(model_, schedule_.problem, step, micro_batch.index());
  record.layers.resize(place.layers.size());
  return record;
}

MicroBatchRecord& ToyProgram::record_of(const Action& action, std::uint64_t step) {
  HeldStage& place = held(action.stage);
  const auto found = place.records.find(action.micro_batch);
  check(found != place.records.end(), "another rank runs this micro-batch");
  MicroBatchRecord* record = found->second.find(step);
  check(record != nullptr, "the micro-batch has not begun, or its activations are gone");
  return *record;
}

LayerRecord& ToyProgram::layer_of(MicroBatchRecord& record, const Action& action, std::size_t layer) {
  return record.layers[layer - dataflow_.layers().first(action.stage).index()];
}

std::span<double> ToyProgram::values_of(TenantKind kind, const Action& action, LayerId layer,
                                        std::uint64_t step) {
  return memory_.at({kind, action.stage, action.micro_batch, layer}, step);
}

std::span<double> ToyProgram::values_of(TenantKind kind, StageId stage, MicroBatchId micro_batch,
                                        std::uint64_t step) {
  return memory_.at({kind, stage, micro_batch, dataflow_.layers().first(stage)}, step);
}

std::span<double> ToyProgram::kept_of(const Action& action, LayerId layer, std::uint64_t step) {
  const bool recomputes = schedule_.problem.recomputation != schedule::Recomputation::None;
  return values_of(recomputes ? TenantKind::Recomputed : TenantKind::Kept, action, layer, step);
}

std::span<double> ToyProgram::part_of(std::span<double> kept, MapPart part, std::size_t map) const {
  const std::size_t size = kept.size() / (3 * model_.maps_per_layer);
  return kept.subspan((static_cast<std::size_t>(part) * model_.maps_per_layer + map) * size, size);
}

std::span<const double> ToyProgram::map_input(const Action& action, LayerId layer, std::size_t map,
                                              std::uint64_t step) {
  if (map == 0 && memory_.has_input(layer)) return values_of(TenantKind::Input, action, layer, step);
  return part_of(kept_of(action, layer, step), MapPart::Input, map);
}

void ToyProgram::forward(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& place = held(action.stage);
  const bool is_embedded = action.first_layer == LayerId{};
  if (is_embedded) {
    check(!exchanges_data_ || run.step == run.first_step || exchanged_step_ + 1 >= run.step,
          "the data of the step is not there");
    open_record(action.stage, action.micro_batch, run.step).layers.front().has_input = true;
  }
  MicroBatchRecord& record = record_of(action, run.step);
  memory_.begin(run);
  if (is_embedded) embed(record, values_of(TenantKind::Input, action, {}, run.step));
  const bool keeps = schedule_.problem.recomputation == schedule::Recomputation::None;
  Values h;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    LayerRecord& own = layer_of(record, action, layer.index());
    const LayerState& state = layer_of(place, layer.index());
    check_forward(run, place, state, own);
    if (memory_.has_input(layer)) {
      const std::span<double> input = values_of(TenantKind::Input, action, layer, run.step);
      if (layer == action.first_layer) {
        h.assign(input.begin(), input.end());
      } else {
        std::copy(h.begin(), h.end(), input.begin());
      }
    }
    h = run_layer(state, h, keeps ? kept_of(action, layer, run.step) : std::span<double>(),
                  !memory_.has_input(layer));
    own.has_run = true;
    own.is_saved = keeps;
    if (&own != &record.layers.back()) (&own + 1)->has_input = true;
  }
  hand_on(run, record, h);
  memory_.end(run);
}

void ToyProgram::check_forward(const ActionRun& run, const HeldStage& place, const LayerState& state,
                               const LayerRecord& record) const {
  const bool waits_for_gather = dataflow_.is_sharded(place.stage) && !dataflow_.gathers_rounds(place.stage);
  check(!record.has_run, "forward twice");
  check(record.has_input, "the input is not there");
  check(run.step == run.first_step || state.updated_step + 1 == run.step, "the last update is missing");
  check(run.step == run.first_step || !waits_for_gather || state.whole_step + 1 == run.step,
        "the parameters are not gathered");
  const bool has_table = &state == &place.layers.front() || &state == &place.layers.back();
  check(run.step == run.first_step || !has_table || !dataflow_.shards_tied(rank_) ||
            tied_whole_step_ + 1 == run.step,
        "the tied parameter is not gathered");
  check_gathered(run, state);
}

void ToyProgram::check_gathered(const ActionRun& run, const LayerState& state) const {
  check(!dataflow_.gathers_rounds(run.action.stage) || state.whole_step == run.step,
        "the parameters are not in their place");
}

/// Puts the output of a forward where the next layer, stage or rank finds it.
void ToyProgram::hand_on(const ActionRun& run, MicroBatchRecord& record, const Values& output) {
  const Action& action = run.action;
  const auto put = [&output](std::span<double> place) {
    std::copy(output.begin(), output.end(), place.begin());
  };
  if (action.end_layer != dataflow_.layers().end(action.stage)) {
    return put(values_of(TenantKind::Input, action, action.end_layer, run.step));
  }
  record.has_output = true;
  const StageId next = StageId::at(action.stage.index() + 1);
  if (next.index() < schedule_.num_stages() && dataflow_.runner(next, action.micro_batch) == rank_) {
    open_record(next, action.micro_batch, run.step).layers.front().has_input = true;
    return put(values_of(TenantKind::Input, next, action.micro_batch, run.step));
  }
  put(values_of(TenantKind::Output, action.stage, action.micro_batch, run.step));
  if (next.index() < schedule_.num_stages()) return;
  run_loss(record, output, values_of(TenantKind::OutputGradient, action.stage, action.micro_batch, run.step),
           run.step);
  record.has_output_gradient = true;
}

void ToyProgram::embed(const MicroBatchRecord& record, std::span<double> output) const {
  const Values& table = held({}).layers.front().blocks[2 * model_.maps_per_layer].used();
  for (std::size_t t = 0; t < record.tokens.size(); ++t) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(record.tokens[t].input * model_.width);
    std::copy_n(row, model_.width, output.begin() + static_cast<std::ptrdiff_t>(t * model_.width));
  }
}

/// Gives the layer's output; keeps what the backward needs where there is a place for it.
Values ToyProgram::run_layer(const LayerState& state, const Values& input, std::span<double> kept,
                             bool keeps_input) const {
  const std::size_t width = model_.width;
  Values h = input;
  for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
    const Values& weight = state.blocks[2 * map].used();
    const Values& bias = state.blocks[2 * map + 1].used();
    Values y(h.size());
    for (std::size_t t = 0; t < h.size(); t += width) {
      for (std::size_t i = 0; i < width; ++i) {
        double z = bias[i];
        for (std::size_t j = 0; j < width; ++j) z += weight[i * width + j] * h[t + j];
        y[t + i] = std::tanh(z);
      }
    }
    if (!kept.empty()) {
      if (map > 0 || keeps_input) std::copy(h.begin(), h.end(), part_of(kept, MapPart::Input, map).begin());
      std::copy(y.begin(), y.end(), part_of(kept, MapPart::Output, map).begin());
    }
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += model_.branch * y[i];
  }
  return h;
}

/// Gives the gradients of the output, then of the logits.
void ToyProgram::run_loss(const MicroBatchRecord& record, const Values& output, std::span<double> gradients,
                          std::uint64_t step) {
  const std::size_t width = model_.width;
  const std::size_t vocabulary = model_.vocabulary;
  const Values& decoder = held(StageId::at(schedule_.num_stages() - 1)).layers.back().blocks.back().used();
  std::fill(gradients.begin(), gradients.end(), 0.0);
  const std::span<double> output_gradient = gradients.first(output.size());
  for (std::size_t t = 0; t < record.tokens.size(); ++t) {
    const std::span<double> logits = gradients.subspan(output.size() + t * vocabulary, vocabulary);
    double sum = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) {
      for (std::size_t i = 0; i < width; ++i) logits[v] += decoder[v * width + i] * output[t * width + i];
      sum += std::exp(logits[v]);
    }
    const std::size_t target = record.tokens[t].target;
    losses_[step] += (std::log(sum) - logits[target]) / num_tokens_;
    for (std::size_t v = 0; v < vocabulary; ++v) {
      logits[v] = (std::exp(logits[v]) / sum - (v == target ? 1.0 : 0.0)) / num_tokens_;
      for (std::size_t i = 0; i < width; ++i) {
        output_gradient[t * width + i] += logits[v] * decoder[v * width + i];
      }
    }
  }
}

void ToyProgram::recompute(const ActionRun& run) {
  const Action& action = run.action;
  MicroBatchRecord& record = record_of(action, run.step);
  memory_.begin(run);
  Values h;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    LayerRecord& own = layer_of(record, action, layer.index());
    check(own.has_run, "there is nothing to compute again");
    check(!own.is_saved, "recomputed what is there");
    check_gathered(run, layer_of(held(action.stage), layer.index()));
    if (memory_.has_input(layer)) {
      const std::span<double> input = values_of(TenantKind::Input, action, layer, run.step);
      h.assign(input.begin(), input.end());
    }
    h = run_layer(layer_of(held(action.stage), layer.index()), h, kept_of(action, layer, run.step),
                  !memory_.has_input(layer));
    own.is_saved = true;
  }
  memory_.end(run);
}

void ToyProgram::backward(const ActionRun& run) {
  memory_.begin(run);
  back_propagate(run);
  add_weight_gradients(run);
  memory_.end(run);
}

void ToyProgram::input_gradient(const ActionRun& run) {
  memory_.begin(run);
  back_propagate(run);
  memory_.end(run);
}

void ToyProgram::weight_gradient(const ActionRun& run) {
  add_weight_gradients(run);
  memory_.end(run);
}

void ToyProgram::back_propagate(const ActionRun& run) {
  const Action& action = run.action;
  MicroBatchRecord& record = record_of(action, run.step);
  const bool is_last = action.end_layer == dataflow_.layers().end(action.stage);
  check(is_last ? record.has_output_gradient : layer_of(record, action, action.end_layer.index()).has_errors,
        "the output gradient is not there");
  const std::span<double> given =
      is_last ? values_of(TenantKind::OutputGradient, action.stage, action.micro_batch, run.step)
              : values_of(TenantKind::InputGradient, action, action.end_layer, run.step);
  const std::size_t size = record.tokens.size() * model_.width;
  Values gradient(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(size));
  for (std::size_t layer = action.end_layer.index(); layer > action.first_layer.index(); --layer) {
    LayerRecord& own = layer_of(record, action, layer - 1);
    check(own.is_saved, "backward without activations");
    check(!own.has_errors, "backward twice");
    check_gathered(run, layer_of(held(action.stage), layer - 1));
    gradient = back_through_layer(layer_of(held(action.stage), layer - 1),
                                  kept_of(action, LayerId::at(layer - 1), run.step), std::move(gradient));
    own.has_errors = true;
  }
  if (action.stage.value > 0 && action.first_layer == dataflow_.layers().first(action.stage)) {
    const StageId previous = StageId::at(action.stage.index() - 1u);
    if (dataflow_.runner(previous, action.micro_batch) == rank_) {
      MicroBatchRecord& before = record_of({.stage = previous, .micro_batch = action.micro_batch}, run.step);
      check(!before.has_output_gradient, "the output gradient comes twice");
      std::copy(gradient.begin(), gradient.end(),
                values_of(TenantKind::OutputGradient, previous, action.micro_batch, run.step).begin());
      before.has_output_gradient = true;
      return;
    }
  }
  std::copy(gradient.begin(), gradient.end(),
            values_of(TenantKind::InputGradient, action, action.first_layer, run.step).begin());
}

/// Gives the gradient of the layer's input; keeps the errors of its maps.
Values ToyProgram::back_through_layer(const LayerState& state, std::span<double> kept, Values dh) const {
  const std::size_t width = model_.width;
  for (std::size_t map = model_.maps_per_layer; map-- > 0;) {
    const Values& weight = state.blocks[2 * map].used();
    const std::span<const double> output = part_of(kept, MapPart::Output, map);
    const std::span<double> error = part_of(kept, MapPart::Error, map);
    for (std::size_t i = 0; i < dh.size(); ++i) {
      error[i] = model_.branch * dh[i] * (1 - output[i] * output[i]);
    }
    for (std::size_t t = 0; t < dh.size(); t += width) {
      for (std::size_t j = 0; j < width; ++j) {
        for (std::size_t i = 0; i < width; ++i) dh[t + j] += weight[i * width + j] * error[t + i];
      }
    }
  }
  return dh;
}

void ToyProgram::add_weight_gradients(const ActionRun& run) {
  MicroBatchRecord& record = record_of(run.action, run.step);
  for (std::size_t layer = run.action.end_layer.index(); layer > run.action.first_layer.index(); --layer) {
    LayerRecord& own = layer_of(record, run.action, layer - 1);
    check(own.has_errors, "the errors are not there");
    check(!own.has_weight_gradient, "weight gradient twice");
    own.has_weight_gradient = true;
    add_weight_gradient(run, LayerId::at(layer - 1), record);
  }
}

void ToyProgram::add_weight_gradient(const ActionRun& run, LayerId layer, const MicroBatchRecord& record) {
  const Action& action = run.action;
  const std::size_t width = model_.width;
  LayerState& state = layer_of(held(action.stage), layer.index());
  check(state.updated_step != run.step && state.reduced_step != run.step, "the gradient comes too late");
  const bool is_in_flight = dataflow_.scatters_rounds(action.stage);
  if (state.gradient_step != run.step) {
    state.gradient_step = run.step;
    state.num_contributions = 0;
    for (Block& block : state.blocks) {
      if (!is_in_flight || block.is_tied) std::fill(block.gradient.begin(), block.gradient.end(), 0.0);
    }
  }
  ++state.num_contributions;
  if (is_in_flight) {
    take_place_of_flight(action, layer);
    state.flight_of = action.micro_batch;
    for (Block& block : state.blocks) block.flight.assign(block.gradient.size(), 0.0);
  }
  for (Block& block : state.blocks) {
    if (block.kind == ParameterKind::Embedding || block.kind == ParameterKind::Decoder) {
      add_table_gradient(block, run, record);
      continue;
    }
    Values& gradient = is_in_flight ? block.flight : block.gradient;
    const std::span<const double> input = map_input(action, layer, block.map, run.step);
    const std::span<const double> error =
        part_of(kept_of(action, layer, run.step), MapPart::Error, block.map);
    for (std::size_t t = 0; t < error.size(); t += width) {
      for (std::size_t i = 0; i < width; ++i) {
        if (block.kind == ParameterKind::Bias) {
          gradient[i] += error[t + i];
          continue;
        }
        for (std::size_t j = 0; j < width; ++j) gradient[i * width + j] += error[t + i] * input[t + j];
      }
    }
  }
}

std::size_t ToyProgram::place_of_bucket(StageId stage, LayerId layer) const {
  constexpr std::size_t kPlaces = schedule::Dataflow::kBucketPlaces;
  const bool is_last = dataflow_.bucket(layer) == dataflow_.first_layers_bucket(stage);
  return is_last ? kPlaces : dataflow_.bucket(layer) % kPlaces;
}

void ToyProgram::take_place_of_flight(const Action& action, LayerId layer) {
  HeldStage& stage = held(action.stage);
  const std::pair own(action.micro_batch, dataflow_.bucket(layer));
  auto& place = stage.flights[place_of_bucket(action.stage, layer)];
  check(!place || *place == own, "a gradient is overwritten before it is reduced");
  // A tied parameter is begun with the last layers and lies with the first.
  check(own.second > 0 || !stage.flights.back() || stage.flights.back()->first == own.first,
        "a micro-batch is begun before the one before it is reduced");
  place = own;
}

void ToyProgram::add_table_gradient(Block& block, const ActionRun& run, const MicroBatchRecord& record) {
  const Action& action = run.action;
  const std::size_t width = model_.width;
  const bool is_embedding = block.kind == ParameterKind::Embedding;
  check(!is_embedding || !dataflow_.reduces_tied_halves(rank_) || tied_rows_step_ == run.step,
        "nobody knows which rows of the tied parameter are read");
  const bool is_in_flight = dataflow_.scatters_rounds(action.stage) && !block.is_tied;
  Values& gradient = is_in_flight ? block.flight : block.gradient;
  const std::span<const double> rows =
      is_embedding ? values_of(TenantKind::InputGradient, action, {}, run.step)
                   : values_of(TenantKind::Output, action.stage, action.micro_batch, run.step);
  const std::span<const double> logits =
      is_embedding ? std::span<const double>()
                   : values_of(TenantKind::OutputGradient, action.stage, action.micro_batch, run.step)
                         .subspan(record.tokens.size() * width);
  for (std::size_t t = 0; t < record.tokens.size(); ++t) {
    for (std::size_t i = 0; i < width; ++i) {
      if (is_embedding) {
        gradient[record.tokens[t].input * width + i] += rows[t * width + i];
        continue;
      }
      for (std::size_t v = 0; v < model_.vocabulary; ++v) {
        gradient[v * width + i] += logits[t * model_.vocabulary + v] * rows[t * width + i];
      }
    }
  }
}

std::span<const Block> ToyProgram::blocks(StageId stage, LayerId layer) const {
  return held(stage).layers[layer.index() - dataflow_.layers().first(stage).index()].blocks;
}

}  // namespace plenum::pipeline
