#include "plenum/pipeline/bert_program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/base/thread_pool.h"
#include "plenum/kernels/optimizer_step.h"
#include "plenum/model/activation_layout.h"
#include "plenum/model/bert.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"
#include "plenum/pipeline/activation_slots.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream.h"

namespace plenum::pipeline {
namespace {

using schedule::Action;
using schedule::ActionType;
using schedule::Rank;
using schedule::Schedule;
using tensor::TensorView;

void require_supported(const Schedule& schedule, const describe::ModelConfig& model) {
  base::require(schedule.num_stages() == 1, "BERT trains with schedules of one stage; schedule {} has {}",
                schedule.name, schedule.num_stages());
  base::require(schedule.problem.stage_layers.front() == model.num_layers,
                "the schedule must have the model's layers: {} instead of {}",
                schedule.problem.stage_layers.front(), model.num_layers);
  for (const schedule::RankProgram& rank : schedule.ranks) {
    for (const schedule::LaneProgram& lane : rank.lanes) {
      for (const Action& action : lane.actions()) {
        const bool is_known =
            action.type == ActionType::Forward || action.type == ActionType::Backward ||
            action.type == ActionType::ReduceGradient || action.type == ActionType::Agree ||
            (action.type == ActionType::Update && action.first_layer == schedule::LayerId{} &&
             action.end_layer.index() == schedule.problem.stage_layers.front());
        base::require(is_known,
                      "BERT trains with schedules without sharding, preconditioning, recomputation and tied "
                      "parameters as actions; schedule {} has the action {}",
                      schedule.name, schedule::traits_of(action.type).name);
      }
    }
  }
}

/// All that lies in a rank's arena.
struct Memory {
  optim::OptimizerBuffers buffers;
  model::TrainingMemory model;
  TensorView scratch;
};

Memory plan(const BertProgramOptions& options, const describe::ParameterTable& table, std::size_t num_slots,
            tensor::MemoryPlan& plan) {
  const tensor::Shape flat{table.num_elements()};
  Memory memory;
  memory.buffers = {.weights_N = plan.add("parameters", flat),
                    .gradients_N = plan.add("gradients", flat),
                    .first_moments_N = plan.add("optimizer state", flat),
                    .second_moments_N = plan.add("optimizer state", flat)};
  memory.model =
      model::plan_training_memory(options.model, options.capacity, options.recompute, num_slots, plan);
  memory.scratch = model::plan_scratch(options.model, options.capacity, options.num_threads, plan);
  return memory;
}

tensor::MemoryLayout layout_of(const BertProgramOptions& options, const describe::ParameterTable& table,
                               std::size_t num_slots) {
  tensor::MemoryPlan sizes;
  plan(options, table, num_slots, sizes);
  return sizes.layout();
}

/// 1 / count; nothing is summed where there is nothing to count.
float inverse_of(std::int64_t count) {
  return count == 0 ? 0.0F : static_cast<float>(1.0 / static_cast<double>(count));
}

double mean_of(double sum, std::int64_t count) {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

}  // namespace

struct BertProgram::State {
  State(const Schedule& run, Rank rank, const BertProgramOptions& given)
      : schedule(run),
        options(given),
        table(options.model),
        slots(schedule, rank),
        pool(options.num_threads),
        arena(layout_of(options, table, slots.num_slots())),
        views(arena),
        memory(plan(options, table, slots.num_slots(), views)),
        stream(pool, memory.scratch.span<std::byte>()),
        weights(model::weights_of(options.model, table, memory.buffers.weights_N)),
        gradients(model::gradients_of(options.model, table, memory.buffers.gradients_N)),
        optimizer(options.optimizer, table, memory.buffers) {}

  const model::MicroBatch& micro_batch_of(const ActionRun& run) const {
    base::check(batch != nullptr && batch->step == run.step, "step {} begins without its data", run.step);
    return batch->micro_batches[run.action.micro_batch.index()];
  }
  model::Pass pass(const ActionRun& run) const {
    const model::MicroBatch& micro_batch = micro_batch_of(run);
    const base::RandomFunction random(options.seed, base::Purpose::Dropout, batch->epoch);
    return {stream, options.model, micro_batch, {.is_on = true, .key = random.key()}};
  }
  const model::Activations& activations_of(const ActionRun& run) const {
    const std::size_t step_index = run.step % schedule.num_steps();
    return memory.model.slots[slots.slot(step_index, run.action.micro_batch)];
  }

  void zero_gradients() {
    constexpr std::size_t kBlock = 1 << 18;
    const std::span<float> values = memory.buffers.gradients_N.span<float>();
    pool.run((values.size() + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
      const std::size_t begin = block * kBlock;
      std::ranges::fill(values.subspan(begin, std::min(kBlock, values.size() - begin)), 0.0F);
    });
  }

  const Schedule& schedule;
  BertProgramOptions options;
  describe::ParameterTable table;
  ActivationSlots slots;
  base::ThreadPool pool;
  tensor::Arena arena;
  tensor::MemoryPlan views;
  Memory memory;
  tensor::Stream stream;
  model::BertWeights weights;
  model::BertGradients gradients;
  optim::Optimizer optimizer;

  std::uint64_t num_updates = 0;
  const model::StepBatch* batch = nullptr;
  double learning_rate = 0;
  model::LossSums losses;  ///< of this rank in this step
  /// What the ranks sum in Agree. A loss that is not finite makes the sum not finite.
  enum Agreed : std::size_t { kMaskedLoss, kNextSentenceLoss, kStop, kNumAgreed };
  std::array<double, kNumAgreed> agreed{};
  std::atomic<bool> is_stop_asked = false;
  StepOutcome outcome;
};

BertProgram::BertProgram(const Schedule& schedule, Rank rank, const BertProgramOptions& options) {
  base::require_kernel_instruction_set();
  require_supported(schedule, options.model);
  state_ = std::make_unique<State>(schedule, rank, options);
}

BertProgram::~BertProgram() = default;

tensor::MemoryLayout BertProgram::plan_memory(const Schedule& schedule, Rank rank,
                                              const BertProgramOptions& options) {
  require_supported(schedule, options.model);
  return layout_of(options, describe::ParameterTable(options.model),
                   ActivationSlots(schedule, rank).num_slots());
}

const tensor::MemoryLayout& BertProgram::memory() const {
  return state_->views.layout();
}
const describe::ParameterTable& BertProgram::parameters() const {
  return state_->table;
}
const optim::OptimizerBuffers& BertProgram::buffers() const {
  return state_->memory.buffers;
}
std::uint64_t BertProgram::num_updates() const {
  return state_->num_updates;
}
void BertProgram::set_num_updates(std::uint64_t num_updates) {
  state_->num_updates = num_updates;
}
const StepOutcome& BertProgram::outcome() const {
  return state_->outcome;
}
void BertProgram::ask_to_stop() {
  state_->is_stop_asked = true;
}

void BertProgram::begin_step(const model::StepBatch& batch, double learning_rate) {
  base::check(batch.micro_batches.size() == state_->schedule.problem.num_micro_batches,
              "a step must have the schedule's micro-batches: {} instead of {}", batch.micro_batches.size(),
              state_->schedule.problem.num_micro_batches);
  state_->batch = &batch;
  state_->learning_rate = learning_rate;
  state_->losses = {};
  state_->zero_gradients();
}

void BertProgram::forward(const ActionRun& run) {
  const model::Pass pass = state_->pass(run);
  const model::Activations& kept = state_->activations_of(run);
  model::bert_forward(pass, state_->weights, kept, state_->memory.model.transients, run.action.first_layer,
                      run.action.end_layer);
  if (run.action.end_layer.index() != state_->weights.layers.size()) return;
  const model::LossSums losses = model::loss_sums(pass, kept);
  state_->losses.masked += losses.masked;
  state_->losses.next_sentence += losses.next_sentence;
}

void BertProgram::backward(const ActionRun& run) {
  const model::LossScale scale{.masked = inverse_of(state_->batch->global.masked),
                               .next_sentence = inverse_of(state_->batch->global.sequences)};
  model::bert_backward(state_->pass(run), state_->weights, state_->gradients, state_->activations_of(run),
                       state_->memory.model.transients, scale, run.action.first_layer, run.action.end_layer);
}

comm::Elements BertProgram::to_reduce(const ActionRun& run) {
  if (run.action.type == ActionType::Agree) {
    state_->agreed[State::kMaskedLoss] = state_->losses.masked;
    state_->agreed[State::kNextSentenceLoss] = state_->losses.next_sentence;
    state_->agreed[State::kStop] = state_->is_stop_asked ? 1.0 : 0.0;
    return comm::elements_of(std::span<double>(state_->agreed));
  }
  const auto range = state_->table.elements_of_layers(run.action.first_layer, run.action.end_layer);
  return comm::elements_of(state_->memory.buffers.gradients_N.span<float>().subspan(
      static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin)));
}

void BertProgram::communicated(const ActionRun& /*run*/) {}

void BertProgram::update(const ActionRun& /*run*/) {
  const describe::Work& global = state_->batch->global;
  StepOutcome outcome{
      .masked_loss = mean_of(state_->agreed[State::kMaskedLoss], global.masked),
      .next_sentence_loss = mean_of(state_->agreed[State::kNextSentenceLoss], global.sequences),
      .is_stop_asked = state_->agreed[State::kStop] > 0};
  // Every rank has the same gradient now, byte for byte, and so comes to the same norm.
  outcome.gradient_norm =
      std::sqrt(kernels::sum_of_squares(state_->stream, state_->memory.buffers.gradients_N));
  outcome.is_skipped = !std::isfinite(outcome.loss()) || !std::isfinite(outcome.gradient_norm);
  if (!outcome.is_skipped) {
    ++state_->num_updates;
    state_->optimizer.step(state_->stream, state_->learning_rate,
                           state_->optimizer.clip_scale(outcome.gradient_norm), state_->num_updates);
  }
  state_->outcome = outcome;
}

}  // namespace plenum::pipeline
