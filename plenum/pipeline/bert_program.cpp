#include "plenum/pipeline/bert_program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/base/instruction_set.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/describe/counted_elements.h"
#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/kernels/attention_work.h"
#include "plenum/kernels/convert.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/kernels/zero_all.h"
#include "plenum/memory/activation_slots.h"
#include "plenum/memory/divided_layers.h"
#include "plenum/memory/own_micro_batches.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/model/bert.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/model/parameters.h"
#include "plenum/model/pass.h"
#include "plenum/pipeline/begun_gradients.h"
#include "plenum/pipeline/bert_memory.h"
#include "plenum/pipeline/bert_schedule.h"
#include "plenum/pipeline/kfac_work.h"
#include "plenum/pipeline/map_gather.h"
#include "plenum/pipeline/parameter_exchange.h"
#include "plenum/pipeline/recorded_work.h"
#include "plenum/pipeline/soap_work.h"
#include "plenum/pipeline/stage_messages.h"
#include "plenum/pipeline/step_exchange.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_stream.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/stream_owner.h"

namespace plenum::pipeline {
namespace {

using kernels::Accumulate;
using kernels::StepScalar;
using schedule::Action;
using schedule::ActionType;
using schedule::Rank;
using schedule::Schedule;
using tensor::TensorView;

constexpr std::size_t kStepsUnderWay = BertProgram::kStepsUnderWay;

describe::LayerRange layers_of(const Action& action) {
  return {action.first_layer, action.end_layer};
}

bool is_of_maps(const Action& collective) {
  return collective.type == ActionType::ReduceCurvature ||
         collective.type == ActionType::GatherPreconditioned;
}

}  // namespace

struct BertProgram::State {
  State(const Schedule& run, Rank rank, const BertProgramOptions& settings)
      : schedule(run),
        options(settings),
        table(table_of(schedule, rank, options)),
        holders(holders_of(schedule, rank)),
        shard(memory::schedule_shard(table, schedule, rank)),
        slots(schedule, rank),
        owner(options.device, options.num_threads, options.partition),
        arena(memory::plan_memory(table, schedule, rank, request_of(options)), options.device),
        views(arena, options.precision),
        memory(memory::plan_rank_memory(table, schedule, rank, shard, slots, request_of(options), views)),
        messages(schedule, rank, slots, memory.activations),
        kfac_memory(memory::plan_kfac_memory(table.model(), schedule, rank, request_of(options).kfac_averages,
                                             views)),
        buffers(buffers_of(memory)),
        optimizer(options.optimizer, table, shard, buffers, memory::divided_layers(table, schedule, rank)),
        own(schedule, rank),
        stagings(stagings_of(table, options, kStepsUnderWay * own.count, memory)),
        stream(owner.stream(memory.scratch, options.precision)),
        weights(weights_of(table, shard, memory)),
        gradients(gradients_of(table, shard, memory)),
        begun(gradients.layers.size()) {
    std::optional<tensor::Stream> queue;
    if (options.device == tensor::Device::Cuda) {
      gpu = std::make_unique<Gpu>(options.partition);
      for (std::size_t i = 0; i < kStepsUnderWay; ++i) exchanged[i] = gpu->exchanged() + i;
      queue.emplace(gpu->communication, std::span<std::byte>(), options.precision);
    }
    exchange.emplace(table, shard, holders.front(), memory, queue);
    if (schedule.problem.preconditioner == schedule::Preconditioner::Kfac) {
      kfac.emplace(options.optimizer.kfac, schedule, rank, table.model(), kfac_memory, gradients, queue);
    }
    const std::vector<memory::DividedLayer> divided = memory::divided_layers(table, schedule, rank);
    if (memory.map_wire)
      directions.emplace(schedule, rank, table.model(), gradients, Wire{memory.map_wire, queue});
    if (!divided.empty() && optimizer.soap() != nullptr)
      soap.emplace(schedule, optimizer, divided, memory.soap_factors);
  }

  ExchangedScalars& exchanged_with(std::uint64_t step) { return *exchanged[step % kStepsUnderWay]; }
  std::size_t staging_index(std::uint64_t step, std::size_t micro_batch) const {
    return step % kStepsUnderWay * own.count + micro_batch - own.first;
  }
  model::MicroBatchStaging& staging_of(std::uint64_t step, std::size_t micro_batch) {
    return stagings[staging_index(step, micro_batch)];
  }

  model::Pass pass(const ActionRun& run) {
    base::check(batch != nullptr && batch->step == run.step, "step {} begins without its data", run.step);
    const std::size_t num_slices = run.slices == nullptr ? 1 : run.slices->size();
    base::check(num_slices == options.tensor_parallel.size,
                "a program of {} slices runs on a rank of {}: it needs their communicator",
                options.tensor_parallel.size, num_slices);
    const base::RandomFunction random(options.seed, base::Purpose::Dropout, batch->epoch);
    return {.stream = stream,
            .model = table.model(),
            .micro_batch = staging_of(run.step, run.action.micro_batch.index()).views(),
            .dropout = {.is_on = true, .key = random.key()},
            .group = run.slices};
  }
  /// Makes the squares of the slices of tensors those of whole tensors. What is not divided all have alike,
  /// but perhaps summed up in another order: all take the first one's.
  void sum_squares_over_slices(const ActionRun& run) {
    if (run.slices == nullptr) return;
    std::vector<TensorView> not_own;
    for (std::size_t i = 0; i < table.parameters().size() && !counts_for_all_slices(); ++i) {
      if (table[i].slice) continue;
      const TensorView squares = memory.tensor_squares_P2.rows(static_cast<std::int64_t>(i), 1);
      not_own.emplace_back(squares.raw(), tensor::DType::Float32, tensor::Shape{2 * squares.num_elements()});
    }
    kernels::zero_all(stream, not_own);
    constexpr comm::Tag kTag = 3;
    const TensorView& all = memory.tensor_squares_P2;
    run.slices->start_all_reduce({{static_cast<std::byte*>(all.raw()), all.num_bytes()}, all.dtype()}, kTag)
        .wait();
  }
  /// What all slices of a rank have alike, one of them counts.
  bool counts_for_all_slices() const { return options.tensor_parallel.index == 0; }
  /// A pass that computes gradients: the first of a step through a layer overwrites those of the step before.
  /// What lies between tensors stays zero, as it is in a new arena.
  model::Pass gradient_pass(const ActionRun& run) {
    model::Pass pass = this->pass(run);
    // A micro-batch whose gradient is in flight is added up when it is reduced.
    pass.accumulate = memory.flights.empty() ? begun.begin(run.action) : Accumulate::No;
    return pass;
  }
  /// The same for a backward or its first half, with what concerns words.
  model::Pass backward_pass(const ActionRun& run) {
    model::Pass pass = gradient_pass(run);
    const bool has_embedding = run.action.first_layer.index() == 0;
    const bool has_heads = run.action.end_layer.index() == table.model().layers.size();
    if (table.is_tied_apart() && (has_embedding || has_heads)) {
      pass.has_word_gradient = true;
      const std::array<TensorView, 1> words = {exchange->tied_gradient_VD()};
      if (begun.begin_tied()) kernels::zero_all(stream, words);
    }
    const TiedRows* const tied_rows = exchange->tied_rows();
    if (tied_rows != nullptr && has_embedding) {
      pass.word_rows_RD = tied_rows->rows_RD();
      pass.micro_batch.by_word =
          tied_rows->by_row(run.action.micro_batch.index() - own.first, pass.micro_batch.by_word);
    }
    return pass;
  }
  /// A stage that lies here too goes on from its own memory.
  void pass_gradient_on(const ActionRun& run, const model::Pass& pass) {
    const std::optional<StageMessages::Place> previous = messages.previous_gradient(run.action, run.step);
    if (!previous || pass.num_read() == 0) return;
    tensor::copy(stream, activations_of(run).dx_TD.first_rows(pass.num_rows()),
                 previous->rows_TD.first_rows(pass.num_rows()));
  }
  /// What a send or a receive carries: as many rows as are computed, for which both ends have the
  /// micro-batch.
  comm::Elements message(const ActionRun& run) {
    const model::MicroBatchViews& micro_batch = staging_of(run.step, run.action.micro_batch.index()).views();
    const bool is_empty = batch::total(micro_batch.num_labels()) == 0;
    return messages.message(run.action, run.step, is_empty ? 0 : micro_batch.num_rows());
  }
  /// What a step's updates have in common, with the first of them.
  void decide_once(const ActionRun& run) {
    if (std::exchange(is_decided, true)) return;
    optimizer.decide(stream, memory.scalars_C);
    if (kfac) kfac->settle(run.step, stream, memory.scalars_C);
    tensor::copy(stream, memory.scalars_C, view_of(exchanged_with(run.step).decided));
  }
  std::span<const batch::MicroBatch> own_micro_batches() const {
    if (batch == nullptr) return {};  // weights may be gathered before the data is missed
    return std::span(batch->micro_batches).subspan(own.first - batch->first_micro_batch, own.count);
  }
  /// Of the step that the action works on.
  const model::Activations& activations_of(const ActionRun& run) const {
    return messages.activations(run.action, run.data_step());
  }
  /// A pass over a micro-batch: on a GPU recorded where it repeats, unless no head reads anything, which
  /// leaves gradients to zero at most, ranks have sums to make in it, or it is one of a pipeline: there a
  /// pass comes in so many slots that recordings are made all the time, while the device idles.
  void run_recorded(const ActionRun& run, const model::Pass& pass, const std::function<void()>& work,
                    std::size_t next_slot = 0) {
    const bool is_recorded = gpu != nullptr && options.records_work && !is_pipeline &&
                             pass.group == nullptr && pass.num_read() > 0;
    if (is_recorded) {
      gpu->recorded.run(recording_key(run, pass, next_slot), stream.cuda(), work);
    } else {
      work();
    }
  }
  RecordingKey recording_key(const ActionRun& run, const model::Pass& pass, std::size_t next_slot) const {
    const model::MicroBatchViews& micro_batch = pass.micro_batch;
    return {.type = run.action.type,
            .is_accumulated = pass.accumulate == Accumulate::Yes,
            .staging = staging_index(run.step, run.action.micro_batch.index()),
            .slot = slots.slot(run.step, run.action.stage, run.action.micro_batch),
            .next_slot = next_slot,
            .first_layer = run.action.first_layer.index(),
            .end_layer = run.action.end_layer.index(),
            .num_rows = micro_batch.num_rows(),
            .num_sequences = micro_batch.attention.sample_S.num_elements(),
            .num_labels = micro_batch.num_labels(),
            .max_length = kernels::attention_launch_length(std::ranges::max(micro_batch.sequences.lengths)),
            .dropout = pass.dropout.key};
  }

  /// What a GPU needs beside a stream: others for copies, for what the holders of a stage do together, and
  /// for messages between stages, which wait for each other and must not hold up the rest. Other ranks wait
  /// for both, while the rank itself may compute what nobody waits for, such as curvature: they go first.
  struct Gpu {
    tensor::CudaStream copies;
    tensor::CudaEvent is_copied;
    tensor::CudaStream communication;  ///< of the rank's part of the GPU: it sums
    tensor::CudaStream messages{nullptr, tensor::StreamPriority::First};
    RecordedWork recorded;
    tensor::PinnedMemory pinned{kStepsUnderWay * sizeof(ExchangedScalars)};

    explicit Gpu(const std::shared_ptr<const tensor::CudaPartition>& partition)
        : communication(partition, tensor::StreamPriority::First) {
      std::uninitialized_value_construct_n(exchanged(), kStepsUnderWay);
    }
    ExchangedScalars* exchanged() const { return reinterpret_cast<ExchangedScalars*>(pinned.data()); }
  };

  const Schedule& schedule;
  BertProgramOptions options;
  const bool is_pipeline = schedule.problem.stage_layers.size() > 1;
  describe::ParameterTable table;
  std::vector<memory::Holder> holders;  ///< by stage
  describe::ParameterShard shard;
  memory::ActivationSlots slots;
  tensor::StreamOwner owner;
  tensor::Arena arena;
  tensor::MemoryPlan views;
  memory::RankMemory memory;
  StageMessages messages;
  memory::KfacMemory kfac_memory;
  optim::OptimizerBuffers buffers;
  optim::Optimizer optimizer;
  memory::OwnMicroBatches own;
  std::vector<model::MicroBatchStaging> stagings;
  tensor::Stream stream;
  model::BertWeights weights;
  model::BertGradients gradients;
  BegunGradients begun;
  bool is_decided = false;  ///< what the step's updates do
  std::unique_ptr<Gpu> gpu;
  std::optional<ParameterExchange> exchange;
  std::optional<KfacWork> kfac;
  std::optional<SoapWork> soap;
  std::optional<MapGather> directions;  ///< of Muon or SOAP, where holders divide them

  std::array<ExchangedScalars, kStepsUnderWay> own_exchanged;
  std::array<ExchangedScalars*, kStepsUnderWay> exchanged{&own_exchanged[0], &own_exchanged[1]};
  const batch::StepBatch* batch = nullptr;
  std::atomic<bool> is_stop_asked = false;
};

BertProgram::BertProgram(const Schedule& schedule, Rank rank, const BertProgramOptions& options) {
  base::require_kernel_instruction_set();
  require_bert_schedule(schedule, options);
  state_ = std::make_unique<State>(schedule, rank, options);
}

BertProgram::~BertProgram() {
  // Memory goes when nothing works on it any more.
  if (!state_ || !state_->gpu) return;
  state_->gpu->copies.drain();
  state_->stream.cuda().drain();
  state_->gpu->communication.drain();
  state_->gpu->messages.drain();
}

tensor::MemoryLayout BertProgram::plan_memory(const Schedule& schedule, Rank rank,
                                              const BertProgramOptions& options) {
  require_bert_schedule(schedule, options);
  return memory::plan_memory(table_of(schedule, rank, options), schedule, rank, request_of(options));
}

const tensor::MemoryLayout& BertProgram::memory() const {
  return state_->views.layout();
}
const describe::ParameterTable& BertProgram::parameters() const {
  return state_->table;
}
const optim::OptimizerBuffers& BertProgram::buffers() const {
  return state_->buffers;
}
const describe::ParameterShard& BertProgram::shard() const {
  return state_->shard;
}
const memory::KfacMemory& BertProgram::kfac() const {
  return state_->kfac_memory;
}
const tensor::Stream& BertProgram::stream() const {
  return state_->stream;
}
const model::BertWeights& BertProgram::weights() const {
  return state_->weights;
}
bool BertProgram::gathers_weights() const {
  return state_->buffers.are_weights_of_shard &&
         state_->schedule.problem.sharding != schedule::Sharding::Parameters;
}
void BertProgram::put_weights(const model::FlatPiece& piece) {
  state_->exchange->put_weights(state_->stream, piece);
}
void BertProgram::ask_to_stop() {
  state_->is_stop_asked = true;
}
const tensor::WorkQueue* BertProgram::queue(schedule::Lane lane) {
  if (!state_->gpu) return nullptr;
  if (lane == schedule::Lane::Compute) return &state_->stream.cuda();
  return lane == schedule::Lane::Pipeline ? &state_->gpu->messages : &state_->gpu->communication;
}

void BertProgram::begin(std::uint64_t num_updates) {
  const optim::OptimizerBuffers& buffers = state_->buffers;
  if (state_->gpu && !buffers.are_weights_of_shard) {
    kernels::round_to_compute(state_->stream, {.x_N = buffers.weights_N, .y_N = buffers.compute_weights_N});
  }
  HostScalars scalars{};
  scalars[kernels::index_of(StepScalar::NumUpdates)] = static_cast<double>(num_updates);
  tensor::copy(state_->stream, view_of(scalars), state_->memory.scalars_C);
  state_->optimizer.begin(state_->stream);
  state_->stream.wait();
}

void BertProgram::begin_step(const batch::StepBatch& batch, double learning_rate, const DueByClock& due) {
  const memory::OwnMicroBatches& own = state_->own;
  base::check(batch.first_micro_batch <= own.first &&
                  own.first + own.count <= batch.first_micro_batch + batch.micro_batches.size(),
              "a step must have the rank's micro-batches: {} from {} on instead of {} from {} on",
              batch.micro_batches.size(), batch.first_micro_batch, own.count, own.first);
  State::Gpu* const gpu = state_->gpu.get();
  state_->batch = &batch;
  HostScalars& given = state_->exchanged_with(batch.step).given;
  given = given_to_step(batch, state_->table.model(), learning_rate, due, state_->is_stop_asked);
  for (std::size_t id = own.first; id < own.first + own.count; ++id) {
    state_->staging_of(batch.step, id)
        .put(batch.micro_batches[id - batch.first_micro_batch], gpu == nullptr ? nullptr : &gpu->copies);
  }
  if (state_->kfac) {
    state_->kfac->begin_step(batch, own.first, own.count,
                             [&](std::size_t id) -> const model::MicroBatchViews& {
                               return state_->staging_of(batch.step, id).views();
                             });
  }
  if (gpu != nullptr) {
    gpu->copies.record(gpu->is_copied);
    state_->stream.cuda().wait_for(gpu->is_copied);
  }
  tensor::copy(state_->stream, view_of(given, kernels::kNumGivenScalars),
               state_->memory.scalars_C.first_rows(kernels::kNumGivenScalars));
  state_->begun.begin_step();
  state_->is_decided = false;
}

void BertProgram::forward(const ActionRun& run) {
  model::Pass pass = state_->pass(run);
  const model::Activations& kept = state_->activations_of(run);
  const std::optional<StageMessages::Place> next = state_->messages.next_input(run.action, run.step);
  if (next) pass.output_TD = next->rows_TD;
  const auto work = [&] {
    model::bert_forward(pass, state_->weights, kept, state_->memory.activations.transients,
                        run.action.first_layer, run.action.end_layer);
    if (run.action.end_layer.index() == state_->weights.layers.size() && state_->counts_for_all_slices()) {
      model::add_losses(pass, kept, state_->memory.scalars_C);
    }
  };
  state_->run_recorded(run, pass, work, next ? next->slot : 0);
}

void BertProgram::recompute(const ActionRun& run) {
  const model::Pass pass = state_->pass(run);
  state_->run_recorded(run, pass, [&] {
    model::bert_recompute(pass, state_->weights, state_->activations_of(run),
                          state_->memory.activations.transients, state_->schedule.problem.recomputation,
                          run.action.first_layer);
  });
}

void BertProgram::backward(const ActionRun& run) {
  const model::Pass pass = state_->backward_pass(run);
  state_->run_recorded(run, pass, [&] {
    model::bert_backward(pass, state_->weights, state_->gradients, state_->activations_of(run),
                         state_->memory.activations.transients, state_->memory.scalars_C,
                         run.action.first_layer, run.action.end_layer);
  });
  state_->pass_gradient_on(run, pass);
}

void BertProgram::input_gradient(const ActionRun& run) {
  const model::Pass pass = state_->backward_pass(run);
  state_->run_recorded(run, pass, [&] {
    model::bert_input_gradient(pass, state_->weights, state_->gradients, state_->activations_of(run),
                               state_->memory.activations.transients, state_->memory.scalars_C,
                               run.action.first_layer, run.action.end_layer);
  });
  state_->pass_gradient_on(run, pass);
}

void BertProgram::weight_gradient(const ActionRun& run) {
  const model::Pass pass = state_->gradient_pass(run);
  state_->run_recorded(run, pass, [&] {
    model::bert_weight_gradient(pass, state_->gradients, state_->activations_of(run),
                                state_->memory.activations.transients, run.action.first_layer,
                                run.action.end_layer);
  });
}

comm::ConstElements BertProgram::outgoing(const ActionRun& run) {
  return state_->message(run);
}

comm::Elements BertProgram::incoming(const ActionRun& run) {
  return state_->message(run);
}

void BertProgram::curvature(const ActionRun& run) {
  state_->kfac->curvature(run, state_->pass(run), state_->activations_of(run),
                          state_->memory.activations.transients);
}

void BertProgram::invert(const ActionRun& run) {
  state_->kfac->invert(run, state_->stream);
}

void BertProgram::invert_layers(const ActionRun& run) {
  state_->kfac->invert_layers(run, state_->stream);
}

void BertProgram::precondition(const ActionRun& run) {
  if (state_->kfac) return state_->kfac->precondition(run, state_->stream);
  state_->decide_once(run);
  state_->optimizer.make_directions(state_->stream, state_->memory.scalars_C, layers_of(run.action));
}

void BertProgram::accumulate_factor(const ActionRun& run) {
  state_->decide_once(run);
  state_->soap->accumulate(run, state_->stream,
                           {.gradient_N = state_->memory.gradients_N, .scalars_C = state_->memory.scalars_C});
}

void BertProgram::inverse_root(const ActionRun& run) {
  state_->soap->refresh(run, state_->stream, state_->memory.scalars_C);
}

comm::Elements BertProgram::to_reduce(const ActionRun& run) {
  if (run.action.type == ActionType::ReduceCurvature) return state_->kfac->to_reduce(run);
  if (run.action.type == ActionType::Agree) {
    // One rank agrees with itself.
    const bool is_alone = state_->schedule.ranks.size() * state_->options.tensor_parallel.size == 1;
    if (state_->gpu && is_alone) return comm::elements_of(std::span<double>());
    // A loss or a square that is not finite makes the sum not finite.
    return comm::elements_of(state_->memory.scalars_C.span<double>().first(kernels::kNumAgreedScalars));
  }
  if (run.action.type == ActionType::ReduceTensorNorms) {
    return comm::elements_of(state_->memory.tensor_squares_P2.span<double>());
  }
  return state_->exchange->to_reduce(run.action);
}

PartitionedElements BertProgram::to_partition(const ActionRun& run) {
  if (run.action.type == ActionType::GatherPreconditioned)
    return state_->kfac ? state_->kfac->to_partition(run) : state_->directions->to_partition(run);
  return state_->exchange->to_partition(run.action, state_->own_micro_batches());
}

PartitionedElements BertProgram::to_gather_besides(const ActionRun& run) {
  return state_->exchange->to_gather_besides(run.action);
}

void BertProgram::communicated(const ActionRun& run) {
  if (state_->kfac && is_of_maps(run.action)) return state_->kfac->communicated(run);
  if (is_of_maps(run.action)) return state_->directions->communicated(run);
  state_->exchange->communicated(run.action, state_->own_micro_batches());
}

void BertProgram::square_gradient(const ActionRun& run) {
  state_->exchange->join_halves(state_->stream);
  if (state_->shard.is_whole()) {
    // Every holder has the same gradient, byte for byte, of which each counts a part.
    const auto range = state_->table.elements_of_layers(run.action.first_layer, run.action.end_layer);
    const memory::Holder& holder = state_->holders[state_->slots.stage_index(run.action.stage)];
    const auto own = describe::counted_elements(range, holder.index, holder.count);
    for (const auto& counted : describe::counted_by_slice(state_->table, own))
      state_->optimizer.add_squares(state_->stream, counted, state_->memory.scalars_C);
  } else {
    state_->optimizer.add_squares_of_shard(state_->stream, state_->memory.scalars_C);
  }
  if (state_->gpu || !state_->is_stop_asked) return;
  // A step of the CPU may take minutes: who asks meanwhile does not wait for another.
  state_->memory.scalars_C.span<double>()[kernels::index_of(StepScalar::Stop)] = 1;
}

void BertProgram::update_moments(const ActionRun& run) {
  state_->decide_once(run);
  state_->optimizer.update_moments(state_->stream, state_->memory.scalars_C, state_->memory.tensor_squares_P2,
                                   layers_of(run.action));
}

void BertProgram::update(const ActionRun& run) {
  const tensor::TensorView& squares_P2 = state_->memory.tensor_squares_P2;
  const describe::LayerRange layers = layers_of(run.action);
  state_->decide_once(run);
  if (squares_P2) {
    // A schedule that sums them over shards has had the moments updated before.
    if (state_->shard.is_whole()) update_moments(run);
    state_->sum_squares_over_slices(run);
    state_->optimizer.update_weights(state_->stream, state_->memory.scalars_C, squares_P2, layers);
  } else {
    state_->optimizer.step(state_->stream, state_->memory.scalars_C, layers, run.step);
  }
}

StepOutcome BertProgram::outcome(std::uint64_t step, const batch::Work& global) const {
  return outcome_of(state_->exchanged_with(step).decided, global, state_->table.model());
}

}  // namespace plenum::pipeline
