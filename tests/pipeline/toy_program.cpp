#include "tests/pipeline/toy_program.h"

#include <algorithm>
#include <cmath>

#include "plenum/base/check.h"

namespace plenum::pipeline {

using base::check;
using schedule::Action;
using schedule::ActionType;
using schedule::LayerId;
using schedule::MicroBatchId;
using schedule::Rank;
using schedule::StageId;

ToyProgram::ToyProgram(const schedule::Schedule& schedule, const schedule::Dataflow& dataflow, Rank rank)
    : schedule_(schedule),
      dataflow_(dataflow),
      rank_(rank),
      model_(toy_model_for(schedule.problem)),
      num_tokens_(static_cast<double>(num_toy_tokens(schedule.problem))),
      num_kept_steps_(std::max<std::size_t>(1, schedule.problem.staleness) + 2) {
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
      state.blocks.push_back({.kind = parameter.kind,
                              .map = parameter.map,
                              .owner = schedule::owner_index(layer, parameter.map,
                                                             dataflow_.layers().count(stage), holders.size()),
                              .is_tied = is_table && schedule_.problem.has_tied_parameters,
                              .parameter = std::move(parameter.initial),
                              .momentum = Values(size, 0.0),
                              .gradient = Values(size, 0.0),
                              .preconditioned = {}});
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
  record.layer_gradients.resize(place.layers.size());
  record.layers.front().input.resize(record.tokens.size() * model_.width);
  record.output_gradient.resize(record.tokens.size() * model_.width);
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

void ToyProgram::forward(const ActionRun& run) {
  const Action& action = run.action;
  HeldStage& place = held(action.stage);
  const bool begins = action.first_layer == dataflow_.layers().first(action.stage);
  if (begins && action.stage.value == 0) {
    check(!exchanges_data_ || run.step == run.first_step || exchanged_step_ + 1 >= run.step,
          "the data of the step is not there");
    embed(open_record(action.stage, action.micro_batch, run.step));
  }
  MicroBatchRecord& record = record_of(action, run.step);
  check(record.has_input, "the input is not there");
  const bool keeps = schedule_.problem.recomputation == schedule::Recomputation::None;
  const bool is_sharded =
      place.num_holders > 1 && schedule_.problem.sharding == schedule::Sharding::Optimizer;
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    const LayerState& state = layer_of(place, layer);
    LayerRecord& own = layer_of(record, action, layer);
    check(!own.has_run, "forward twice");
    check(!own.input.empty(), "the layer before has not run");
    check(run.step == run.first_step || state.updated_step + 1 == run.step, "the last update is missing");
    check(run.step == run.first_step || !is_sharded || state.whole_step + 1 == run.step,
          "the parameters are not gathered");
    Values output = run_layer(state, own, keeps);
    own.has_run = true;
    (&own == &record.layers.back() ? record.output : (&own + 1)->input) = std::move(output);
  }
  if (action.end_layer != dataflow_.layers().end(action.stage)) return;
  record.has_output = true;
  const StageId next = StageId::at(action.stage.index() + 1);
  if (next.index() == schedule_.num_stages()) {
    run_loss(record, run.step);
  } else if (dataflow_.runner(next, action.micro_batch) == rank_) {
    MicroBatchRecord& after = open_record(next, action.micro_batch, run.step);
    after.layers.front().input = record.output;
    after.has_input = true;
  }
}

void ToyProgram::embed(MicroBatchRecord& record) {
  const Values& table = held({}).layers.front().blocks[2 * model_.maps_per_layer].parameter;
  for (std::size_t t = 0; t < record.tokens.size(); ++t) {
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(record.tokens[t].input * model_.width);
    std::copy_n(row, model_.width,
                record.layers.front().input.begin() + static_cast<std::ptrdiff_t>(t * model_.width));
  }
  record.has_input = true;
}

/// Gives the layer's output; keeps what the backward needs if asked to.
Values ToyProgram::run_layer(const LayerState& state, LayerRecord& record, bool saves) const {
  const std::size_t width = model_.width;
  Values h = record.input;
  if (saves) {
    record.map_inputs.resize(model_.maps_per_layer);
    record.map_outputs.resize(model_.maps_per_layer);
  }
  for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
    const Values& weight = state.blocks[2 * map].parameter;
    const Values& bias = state.blocks[2 * map + 1].parameter;
    Values y(h.size());
    for (std::size_t t = 0; t < h.size(); t += width) {
      for (std::size_t i = 0; i < width; ++i) {
        double z = bias[i];
        for (std::size_t j = 0; j < width; ++j) z += weight[i * width + j] * h[t + j];
        y[t + i] = std::tanh(z);
      }
    }
    if (saves) {
      record.map_inputs[map] = h;
      record.map_outputs[map] = y;
    }
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += model_.branch * y[i];
  }
  return h;
}

void ToyProgram::run_loss(MicroBatchRecord& record, std::uint64_t step) {
  const std::size_t width = model_.width;
  const std::size_t vocabulary = model_.vocabulary;
  const Values& decoder = held(StageId::at(schedule_.num_stages() - 1)).layers.back().blocks.back().parameter;
  record.logit_gradient.assign(record.tokens.size() * vocabulary, 0.0);
  std::fill(record.output_gradient.begin(), record.output_gradient.end(), 0.0);
  for (std::size_t t = 0; t < record.tokens.size(); ++t) {
    const std::span<double> logits(record.logit_gradient.data() + t * vocabulary, vocabulary);
    double sum = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) {
      for (std::size_t i = 0; i < width; ++i) {
        logits[v] += decoder[v * width + i] * record.output[t * width + i];
      }
      sum += std::exp(logits[v]);
    }
    const std::size_t target = record.tokens[t].target;
    losses_[step] += (std::log(sum) - logits[target]) / num_tokens_;
    for (std::size_t v = 0; v < vocabulary; ++v) {
      logits[v] = (std::exp(logits[v]) / sum - (v == target ? 1.0 : 0.0)) / num_tokens_;
      for (std::size_t i = 0; i < width; ++i) {
        record.output_gradient[t * width + i] += logits[v] * decoder[v * width + i];
      }
    }
  }
  record.has_output_gradient = true;
}

void ToyProgram::recompute(const ActionRun& run) {
  const Action& action = run.action;
  MicroBatchRecord& record = record_of(action, run.step);
  for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
    LayerRecord& own = layer_of(record, action, layer);
    check(own.has_run, "there is nothing to compute again");
    check(own.map_inputs.empty(), "recomputed what is there");
    run_layer(layer_of(held(action.stage), layer), own, true);
  }
}

void ToyProgram::backward(const ActionRun& run) {
  input_gradient(run);
  weight_gradient(run);
}

void ToyProgram::input_gradient(const ActionRun& run) {
  const Action& action = run.action;
  MicroBatchRecord& record = record_of(action, run.step);
  const std::size_t first = dataflow_.layers().first(action.stage).index();
  for (std::size_t layer = action.end_layer.index(); layer > action.first_layer.index(); --layer) {
    const std::size_t index = layer - 1 - first;
    LayerRecord& own = record.layers[index];
    const bool is_last = index + 1 == record.layers.size();
    check(!own.map_inputs.empty(), "backward without activations");
    check(own.errors.empty(), "backward twice");
    check(is_last ? record.has_output_gradient : !record.layer_gradients[index + 1].empty(),
          "the output gradient is not there");
    record.layer_gradients[index] =
        back_through_layer(layer_of(held(action.stage), layer - 1), own,
                           is_last ? record.output_gradient : record.layer_gradients[index + 1]);
  }
  if (action.first_layer.index() != first || action.stage.value == 0) return;
  const StageId previous = StageId::at(action.stage.index() - 1u);
  if (dataflow_.runner(previous, action.micro_batch) != rank_) return;
  MicroBatchRecord& before = record_of({.stage = previous, .micro_batch = action.micro_batch}, run.step);
  check(!before.has_output_gradient, "the output gradient comes twice");
  before.output_gradient = record.layer_gradients.front();
  before.has_output_gradient = true;
}

/// Gives the gradient of the layer's input; keeps the errors of its maps.
Values ToyProgram::back_through_layer(const LayerState& state, LayerRecord& record,
                                      const Values& gradient) const {
  const std::size_t width = model_.width;
  Values dh = gradient;
  record.errors.resize(model_.maps_per_layer);
  for (std::size_t map = model_.maps_per_layer; map-- > 0;) {
    const Values& weight = state.blocks[2 * map].parameter;
    Values& error = record.errors[map];
    error.resize(dh.size());
    for (std::size_t i = 0; i < dh.size(); ++i) {
      error[i] = model_.branch * dh[i] * (1 - record.map_outputs[map][i] * record.map_outputs[map][i]);
    }
    for (std::size_t t = 0; t < dh.size(); t += width) {
      for (std::size_t j = 0; j < width; ++j) {
        for (std::size_t i = 0; i < width; ++i) dh[t + j] += weight[i * width + j] * error[t + i];
      }
    }
  }
  return dh;
}

void ToyProgram::weight_gradient(const ActionRun& run) {
  const Action& action = run.action;
  MicroBatchRecord& record = record_of(action, run.step);
  for (std::size_t layer = action.end_layer.index(); layer > action.first_layer.index(); --layer) {
    add_weight_gradient(layer_of(held(action.stage), layer - 1), layer_of(record, action, layer - 1), record,
                        run.step);
  }
}

void ToyProgram::add_weight_gradient(LayerState& state, LayerRecord& record, MicroBatchRecord& micro_batch,
                                     std::uint64_t step) {
  const std::size_t width = model_.width;
  check(!record.errors.empty(), "the errors are not there");
  check(!record.has_weight_gradient, "weight gradient twice");
  check(state.updated_step != step && state.reduced_step != step, "the gradient comes too late");
  record.has_weight_gradient = true;
  if (state.gradient_step != step) {
    state.gradient_step = step;
    state.num_contributions = 0;
    for (Block& block : state.blocks) std::fill(block.gradient.begin(), block.gradient.end(), 0.0);
  }
  ++state.num_contributions;
  for (Block& block : state.blocks) {
    if (block.kind == ParameterKind::Embedding || block.kind == ParameterKind::Decoder) {
      add_table_gradient(block, micro_batch);
      continue;
    }
    const Values& input = record.map_inputs[block.map];
    const Values& error = record.errors[block.map];
    for (std::size_t t = 0; t < error.size(); t += width) {
      for (std::size_t i = 0; i < width; ++i) {
        if (block.kind == ParameterKind::Bias) {
          block.gradient[i] += error[t + i];
          continue;
        }
        for (std::size_t j = 0; j < width; ++j) block.gradient[i * width + j] += error[t + i] * input[t + j];
      }
    }
  }
}

void ToyProgram::add_table_gradient(Block& block, const MicroBatchRecord& record) const {
  const std::size_t width = model_.width;
  for (std::size_t t = 0; t < record.tokens.size(); ++t) {
    for (std::size_t i = 0; i < width; ++i) {
      if (block.kind == ParameterKind::Embedding) {
        block.gradient[record.tokens[t].input * width + i] += record.layer_gradients.front()[t * width + i];
        continue;
      }
      for (std::size_t v = 0; v < model_.vocabulary; ++v) {
        block.gradient[v * width + i] +=
            record.logit_gradient[t * model_.vocabulary + v] * record.output[t * width + i];
      }
    }
  }
}

std::span<const Block> ToyProgram::blocks(StageId stage, LayerId layer) const {
  return held(stage).layers[layer.index() - dataflow_.layers().first(stage).index()].blocks;
}

}  // namespace plenum::pipeline
