#include "plenum/train/replicas.h"

#include <algorithm>
#include <new>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/schedule/simulate/timeline_of.h"
#include "plenum/tensor/copy.h"
#include "plenum/train/rank_times.h"
#include "plenum/train/step_timeline.h"

namespace plenum::train {
namespace {

/// Which slice of the model a program has.
std::size_t slice_of(const pipeline::BertProgram& program) {
  return program.parameters().model().tensor_parallel.index;
}

/// What an optimizer keeps beside moments.
std::vector<StateTensor> states_of(const pipeline::BertProgram& program,
                                   const optim::OptimizerOptions& optimizer) {
  if (optimizer.kind != optim::OptimizerKind::Soap) return {};
  const std::span<float> state = program.buffers().soap.state.span<float>();
  std::vector<StateTensor> states;
  for (const optim::SoapTensor& tensor : optim::soap_tensors(program.parameters(), optimizer.soap)) {
    states.push_back({tensor.name,
                      {tensor.size, tensor.size},
                      state.subspan(static_cast<std::size_t>(tensor.begin),
                                    static_cast<std::size_t>(tensor.size * tensor.size))});
  }
  return states;
}

/// Of all ranks, padding included, also what a GPU adds to have few shapes.
std::int64_t computed_rows(const batch::StepBatch& batch, tensor::Device device) {
  std::int64_t rows = 0;
  for (const std::int64_t of_micro_batch : batch.global_rows)
    rows += memory::computed_rows(of_micro_batch, device);
  return rows;
}

/// Throws what the action threw if the user can do something about it; returns otherwise.
void rethrow_for_user(const pipeline::Failure& failure) {
  if (!failure.cause) return;
  try {
    std::rethrow_exception(failure.cause);
  } catch (const base::UserError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return;
  }
}

}  // namespace

Replicas::Replicas(const schedule::Schedule& schedule, const pipeline::BertProgramOptions& options,
                   const Processes& processes, std::chrono::milliseconds hang_limit)
    : schedule_(schedule),
      processes_(processes),
      mesh_(schedule.ranks.size() * options.tensor_parallel.size, options.tensor_parallel.size),
      flops_(describe::describe_bert(options.model)),
      device_(options.device),
      optimizer_(options.optimizer),
      hang_limit_(hang_limit) {
  base::check(processes.is_alone() || processes.count() == mesh_.num_ranks(),
              "every process is a rank: processes={} ranks={}", processes.count(), mesh_.num_ranks());
  for (std::size_t i = 0; i < mesh_.num_ranks(); ++i) {
    const base::Rank rank = base::Rank::at(i);
    if (processes.rank().value_or(rank) != rank) continue;
    pipeline::BertProgramOptions own = options;
    own.tensor_parallel = mesh_.slice_of(rank);
    programs_.push_back(std::make_unique<pipeline::BertProgram>(schedule, mesh_.replica_of(rank), own));
  }
  if (num_slices() > 1 || first().buffers().are_weights_of_shard) whole_.emplace(options.model, num_slices());
  if (whole_ && !processes.is_alone())
    between_steps_ = pipeline::rank_of_world(first(), processes.communicator(), num_slices());
  if (options.device == tensor::Device::Cuda) window_.emplace(first().stream());
}

model::FlatWeights Replicas::weights() const {
  if (whole_) return {.exact_N = whole_->weights_N(), .compute_N = whole_->weights_N()};
  const optim::OptimizerBuffers& buffers = first().buffers();
  return {.exact_N = buffers.weights_N, .compute_N = buffers.compute_weights_N};
}

void Replicas::gather_weights() {
  if (!whole_) return;
  if (between_steps_) return gather_weights_of_processes();
  const bool is_sharded = first().buffers().are_weights_of_shard;
  for (const auto& program : is_sharded ? std::span(programs_) : first_replica()) {
    for_each_weight(*program,
                    [&](const model::FlatPiece& piece) { whole_->gather(slice_of(*program), piece); });
  }
}

void Replicas::gather_weights_of_processes() {
  const std::span<const float> own = first().buffers().weights_N.span<float>();
  std::vector<WholeModel::Holding> holdings;
  if (first().buffers().are_weights_of_shard) {
    for (std::size_t i = 0; i < mesh_.num_ranks(); ++i) {
      const base::Rank rank = base::Rank::at(i);
      const std::size_t slice = mesh_.slice_of(rank).index;
      holdings.push_back(
          {slice, memory::schedule_shard(whole_->slice(slice), schedule_, mesh_.replica_of(rank))});
    }
    const bool has_slices = between_steps_->everyone != nullptr;
    return whole_->gather(own, holdings,
                          has_slices ? *between_steps_->everyone : *between_steps_->communicator);
  }
  // A layer at a time, so that little memory is needed on the way.
  const auto layers = WholeModel::single_layers(whole_->table().model().layers.size());
  for (std::size_t slice = 0; slice < num_slices(); ++slice)
    holdings.push_back({slice, describe::ParameterShard(whole_->slice(slice), layers, 0, 1)});
  whole_->gather(own, holdings, *between_steps_->slices);
}

std::span<const std::unique_ptr<pipeline::BertProgram>> Replicas::first_replica() const {
  return std::span(programs_).first(std::min(num_slices(), programs_.size()));
}

void Replicas::for_each_weight(const pipeline::BertProgram& program,
                               base::FunctionRef<void(const model::FlatPiece&)> visit) {
  const optim::OptimizerBuffers& buffers = program.buffers();
  if (!buffers.are_weights_of_shard) return visit({0, buffers.weights_N.span<float>()});
  for (const describe::ParameterShard::Bucket& bucket : program.shard().buckets())
    visit({bucket.own.begin, buffers.weights_N.rows(bucket.begin, bucket.num_own()).span<float>()});
}

Replicas::Share Replicas::everything() const {
  const Elements all{0, parameters().num_elements()};
  return {all, all};
}

Replicas::Share Replicas::share_of(base::Rank rank, Held held) const {
  const auto part = [&](std::size_t index, std::size_t count) {
    const auto end = [&](std::size_t num_parts) {
      return parameters().num_elements() * static_cast<std::int64_t>(num_parts) /
             static_cast<std::int64_t>(count);
    };
    return Elements{end(index), end(index + 1)};
  };
  const bool is_alike = held == Held::ByEveryReplica;
  const std::size_t slice = mesh_.slice_of(rank).index;
  if (processes_.is_alone()) {  // the first that has it stands for all
    if (is_alike && mesh_.replica_of(rank).index() > 0) return {};
    return {everything().divided, slice == 0 ? everything().alike : Elements{}};
  }
  if (!is_alike) return {everything().divided, part(slice, num_slices())};
  return {part(mesh_.replica_of(rank).index(), mesh_.num_replicas()), part(rank.index(), mesh_.num_ranks())};
}

void Replicas::add_piece(const pipeline::BertProgram& program, const model::FlatPiece& piece,
                         const Share& share, std::vector<model::FlatPiece>& pieces) const {
  if (!whole_) return model::add_within(share.divided.begin, share.divided.end, piece, pieces);
  const auto add = [&](WholeModel::Which which, const Elements& elements) {
    std::vector<model::FlatPiece> of_whole;
    whole_->add_pieces(slice_of(program), piece, which, of_whole);
    for (const model::FlatPiece& own : of_whole) model::add_within(elements.begin, elements.end, own, pieces);
  };
  add(WholeModel::Which::Divided, share.divided);
  add(WholeModel::Which::Alike, share.alike);
}

void Replicas::add_weights(const pipeline::BertProgram& program, const Share& share, Pieces& pieces) const {
  for_each_weight(program,
                  [&](const model::FlatPiece& piece) { add_piece(program, piece, share, pieces.weights); });
}

void Replicas::add_moments(const pipeline::BertProgram& program, const Share& share, Pieces& pieces) const {
  for (const describe::ParameterShard::Bucket& bucket : program.shard().buckets()) {
    const auto add = [&](const tensor::TensorView& values_S, std::vector<model::FlatPiece>& to) {
      add_piece(program, {bucket.own.begin, values_S.rows(bucket.begin, bucket.num_own()).span<float>()},
                share, to);
    };
    add(program.buffers().first_moments_S, pieces.first_moments);
    add(program.buffers().second_moments_S, pieces.second_moments);
  }
}

CheckpointTensors Replicas::tensors_of(Pieces pieces, const pipeline::BertProgram& program) const {
  return {.table = parameters(),
          .weights = model::FlatPieces(std::move(pieces.weights)),
          .first_moments = model::FlatPieces(std::move(pieces.first_moments)),
          .second_moments = model::FlatPieces(std::move(pieces.second_moments)),
          .optimizer = optimizer_.kind,
          .states = states_of(program, optimizer_),
          .window = window_ ? &*window_ : nullptr};
}

CheckpointTensors Replicas::tensors() const {
  Pieces pieces;
  const std::size_t first_rank = processes_.rank().value_or(base::Rank::at(0)).index();
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    const base::Rank rank = base::Rank::at(first_rank + i);
    const bool is_sharded = !programs_[i]->shard().is_whole();
    const bool has_shard_of_weights = programs_[i]->buffers().are_weights_of_shard;
    add_weights(*programs_[i],
                share_of(rank, has_shard_of_weights ? Held::ByOneReplica : Held::ByEveryReplica), pieces);
    add_moments(*programs_[i], share_of(rank, is_sharded ? Held::ByOneReplica : Held::ByEveryReplica),
                pieces);
  }
  return tensors_of(std::move(pieces), first());
}

void Replicas::load(const FoundCheckpoint& checkpoint) {
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) {
    // Replicas in this process get theirs from the first, in begin().
    const bool is_copied = program != programs_.front() && !whole_;
    if (is_copied && program->shard().is_whole()) continue;
    Pieces pieces;
    if (!is_copied) add_weights(*program, everything(), pieces);
    add_moments(*program, everything(), pieces);
    train::load(checkpoint, tensors_of(std::move(pieces), *program));
  }
}

void Replicas::write_weights(base::FunctionRef<void(const tensor::TensorView&)> write) {
  if (whole_) {
    write(whole_->weights_N());
    for (const std::unique_ptr<pipeline::BertProgram>& program : programs_)
      for_each_weight(*program,
                      [&](const model::FlatPiece& piece) { whole_->scatter(slice_of(*program), piece); });
    return;
  }
  const tensor::TensorView& weights_N = first().buffers().weights_N;
  if (!window_) return write(weights_N);
  std::vector<float> on_host(static_cast<std::size_t>(weights_N.num_elements()));
  const tensor::TensorView host_N(on_host.data(), weights_N.shape());
  write(host_N);
  tensor::copy(first().stream(), host_N, weights_N);
  first().stream().wait();
}

void Replicas::begin(std::uint64_t first_step, std::uint64_t num_updates) {
  const optim::OptimizerBuffers& begun = first().buffers();
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) {
    const optim::OptimizerBuffers& buffers = program->buffers();
    // Slices and shards have theirs already.
    if (program != programs_.front() && !whole_) {
      tensor::copy(program->stream(), begun.weights_N, buffers.weights_N);
      // Whoever has a shard of the moments has loaded it.
      if (program->shard().is_whole()) {
        tensor::copy(program->stream(), begun.first_moments_S, buffers.first_moments_S);
        tensor::copy(program->stream(), begun.second_moments_S, buffers.second_moments_S);
        if (begun.soap.state) tensor::copy(program->stream(), begun.soap.state, buffers.soap.state);
      }
    }
    program->begin(num_updates);
  }
  num_ended_ = first_step;
  executor_.emplace(schedule_, ranks_here(),
                    pipeline::ExecutorOptions{.hang_limit = hang_limit_,
                                              .first_step = first_step,
                                              .on_stuck = [this](const pipeline::Failure& hang) {
                                                if (on_stuck_) on_stuck_(hang);
                                              }});
}

std::vector<pipeline::LocalRank> Replicas::ranks_here() const {
  if (!processes_.is_alone()) {
    std::vector<pipeline::LocalRank> ranks;
    ranks.push_back(pipeline::rank_of_world(first(), processes_.communicator(), num_slices()));
    return ranks;
  }
  std::vector<pipeline::StageProgram*> programs;
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) programs.push_back(program.get());
  return pipeline::local_ranks(programs, num_slices());
}

void Replicas::begin_step(std::span<const batch::StepBatch> batches, const StepRequest& request) {
  constexpr std::uint64_t kStepsUnderWay = pipeline::BertProgram::kStepsUnderWay;
  const std::uint64_t step = executor_->next_step();
  if (step >= kStepsUnderWay) executor_->await_step(step - kStepsUnderWay);
  if (request.device_times == pipeline::DeviceTimes::Recorded) record(batches, request);
  is_broken_ = true;
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    // What one rank says all are told.
    const pipeline::DueByClock due = rank == 0 ? request.due : pipeline::DueByClock{};
    programs_[rank]->begin_step(batches[rank / num_slices()], request.learning_rate, due);
  }
  try {
    executor_->run(1, request.device_times);
  } catch (const pipeline::ExecutionError& error) {
    rethrow_for_user(error.failure());
    throw;
  }
  is_broken_ = false;
  const batch::Work& work = batches.front().global;
  under_way_.push_back({.request = request,
                        .work = work,
                        .padded_tokens = computed_rows(batches.front(), device_) - work.tokens});
}

StepReport Replicas::end_step() {
  const StepUnderWay step = under_way_.front();
  under_way_.pop_front();
  executor_->await_step(num_ended_);
  const pipeline::StepOutcome outcome = first().outcome(num_ended_, step.work);
  // What ran while another step ran before it did not begin earlier than that ended.
  const Clock::time_point begin = std::max(step.request.asked, end_of_step_);
  end_of_step_ = Clock::now();
  return {.step = ++num_ended_,
          .outcome = outcome,
          .learning_rate = step.request.learning_rate,
          .work = step.work,
          .padded_tokens = step.padded_tokens,
          .seconds = std::chrono::duration<double>(end_of_step_ - begin).count(),
          .flops = flops_.training(step.work)};
}

void Replicas::record(std::span<const batch::StepBatch> batches, const StepRequest& request) {
  recorded_ = {.waited_seconds = std::chrono::duration<double>(Clock::now() - request.asked).count(),
               .empty_micro_batches = {}};
  for (const batch::StepBatch& batch : batches) {
    for (std::size_t i = 0; i < batch.micro_batches.size(); ++i) {
      if (batch.micro_batches[i].num_rows == 0)
        recorded_.empty_micro_batches.push_back(batch.first_micro_batch + i);
    }
  }
}

trace::Timeline Replicas::timeline(std::string title) {
  std::vector<bool> is_empty(schedule_.problem.num_micro_batches);
  for (const std::size_t micro_batch : recorded_.empty_micro_batches) is_empty[micro_batch] = true;
  const pipeline::MeasuredCycle cycle = executor_->measured([&](pipeline::MeasuredCycle& own) {
    // Of the slices of a replica the first stands for all.
    const bool counts = slice_of(first()) == 0;
    if (!processes_.is_alone()) add_other_processes(processes_, counts, own, is_empty);
  });
  trace::Timeline timeline =
      schedule::timeline_of(schedule_, cycle.times, std::move(title), schedule::ActionLabels::Words);
  remove_spans(timeline, [&](const trace::Span& span) {
    return span.micro_batch >= 0 && is_empty[static_cast<std::size_t>(span.micro_batch)];
  });
  add_wait_for_data(timeline, recorded_.waited_seconds);
  return timeline;
}

}  // namespace plenum::train
