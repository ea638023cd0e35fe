#include "plenum/train/replicas.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/memory/divided_layers.h"
#include "plenum/memory/hidden_matrices.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_partition.h"
#include "plenum/train/kfac_states.h"
#include "plenum/train/rank_times.h"
#include "plenum/train/soap_states.h"

namespace plenum::train {
namespace {

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

Replicas::Replicas(const Mesh& mesh, const schedule::Schedule& schedule,
                   const pipeline::BertProgramOptions& options, const Processes& processes,
                   std::chrono::milliseconds hang_limit, const std::optional<plan::Link>& emulated_link)
    : schedule_(schedule),
      processes_(processes),
      mesh_(mesh),
      parts_(options.model, mesh, schedule),
      flops_(describe::describe_bert(options.model)),
      device_(options.device),
      optimizer_(options.optimizer),
      divides_soap_(optimizer_.kind == optim::OptimizerKind::Soap &&
                    schedule::follows_agreement(schedule.problem.preconditioner)),
      hang_limit_(hang_limit),
      emulated_link_(emulated_link) {
  base::check(schedule.ranks.size() == mesh.num_places(), "the schedule must be of the mesh: {} ranks for {}",
              schedule.ranks.size(), mesh.num_places());
  base::check(processes.is_alone() || processes.count() == mesh_.num_ranks(),
              "every process is a rank: processes={} ranks={}", processes.count(), mesh_.num_ranks());
  const bool shares_gpu =
      options.device == tensor::Device::Cuda && processes.is_alone() && mesh_.num_ranks() > 1;
  std::vector<std::shared_ptr<const tensor::CudaPartition>> partitions;
  if (shares_gpu) partitions = tensor::CudaPartition::split(mesh_.num_ranks());
  for (std::size_t i = 0; i < mesh_.num_ranks(); ++i) {
    const base::Rank rank = base::Rank::at(i);
    if (processes.rank().value_or(rank) != rank) continue;
    pipeline::BertProgramOptions own = options;
    own.tensor_parallel = mesh_.slice_of(rank);
    if (shares_gpu) own.partition = partitions[i];
    programs_.push_back(std::make_unique<pipeline::BertProgram>(schedule, mesh_.place_of(rank), own));
  }
  const bool is_sharded = first().buffers().are_weights_of_shard;
  if (parts_.are_several() || is_sharded) whole_.emplace(parts_);
  if (whole_ && !processes.is_alone()) {
    of_model_ = processes.communicator();
    const std::size_t begin = mesh_.replica_of(rank_of(0)).index() * mesh_.ranks_per_replica();
    std::vector<std::size_t> of_replica(mesh_.ranks_per_replica());
    std::iota(of_replica.begin(), of_replica.end(), begin);
    if (!is_sharded) of_model_ = of_model_->group(of_replica);
  }
  if (options.device == tensor::Device::Cuda) window_.emplace(first().stream());
}

base::Rank Replicas::rank_of(std::size_t program) const {
  return base::Rank::at(processes_.rank().value_or(base::Rank::at(0)).index() + program);
}

model::BertWeights Replicas::weights() const {
  if (!whole_) return first().weights();
  return model::weights_of(parameters(), {.exact_N = whole_->weights_N(), .compute_N = whole_->weights_N()});
}

void Replicas::gather_weights() {
  if (!whole_) return;
  if (of_model_) return gather_weights_of_processes();
  // Without shards the first replica has all.
  const bool is_sharded = first().buffers().are_weights_of_shard;
  const std::size_t count = is_sharded ? programs_.size() : mesh_.ranks_per_replica();
  for (std::size_t i = 0; i < count; ++i) {
    for_each_weight(*programs_[i], [&](const model::FlatPiece& piece) {
      std::vector<float> room;
      whole_->gather(rank_of(i), {piece.begin, on_host(piece.values, room)});
    });
  }
}

std::span<float> Replicas::on_host(std::span<float> values, std::vector<float>& room) const {
  if (!window_) return values;
  room.reserve(values.size());
  window_->read(values,
                [&](std::span<const float> part) { room.insert(room.end(), part.begin(), part.end()); });
  return room;
}

void Replicas::gather_weights_of_processes() {
  const bool is_sharded = first().buffers().are_weights_of_shard;
  std::vector<WholeModel::Holding> holdings;
  for (std::size_t i = 0; i < of_model_->size(); ++i) {
    const base::Rank rank = of_model_->rank_of(i);
    holdings.push_back(
        is_sharded ? WholeModel::Holding::of_shard(
                         rank, memory::schedule_shard(parts_.part(rank), schedule_, mesh_.place_of(rank)))
                   : WholeModel::Holding::of_part(parts_, rank));
  }
  std::vector<float> room;
  whole_->gather(on_host(first().buffers().weights_N.span<float>(), room), holdings, *of_model_);
}

void Replicas::for_each_weight(const pipeline::BertProgram& program,
                               base::FunctionRef<void(const model::FlatPiece&)> visit) {
  const optim::OptimizerBuffers& buffers = program.buffers();
  if (!buffers.are_weights_of_shard) return visit({0, buffers.weights_N.span<float>()});
  for (const describe::ParameterShard::Bucket& bucket : program.shard().buckets())
    visit({bucket.own.begin, buffers.weights_N.rows(bucket.begin, bucket.num_own()).span<float>()});
}

ModelParts::Elements Replicas::share_of(base::Rank rank, std::size_t parameter, Which which) const {
  const describe::Parameter& own = parts_.part(rank)[parameter];
  if (which == Which::All) return {own.begin, own.end()};
  ModelParts::Holder holder = parts_.holder(rank, parameter);
  if (which == Which::OfAllReplicas) {
    holder.index += mesh_.replica_of(rank).index() * holder.count;
    holder.count *= mesh_.num_replicas();
  }
  if (processes_.is_alone()) holder.count = 1;  // the first that has it stands for all
  if (holder.index >= holder.count) return {};
  const auto end = [&](std::size_t num_shares) {
    return own.begin + own.num_elements() * static_cast<std::int64_t>(num_shares) /
                           static_cast<std::int64_t>(holder.count);
  };
  return {end(holder.index), end(holder.index + 1)};
}

void Replicas::add_piece(base::Rank rank, const model::FlatPiece& piece, Which which,
                         std::vector<model::FlatPiece>& pieces, Of of) const {
  for (std::size_t i = 0; i < parts_.part(rank).parameters().size(); ++i) {
    if (of == Of::OthersThanMatrices && describe::is_hidden_matrix(parts_.part(rank)[i])) continue;
    const ModelParts::Elements share = share_of(rank, i, which);
    std::vector<model::FlatPiece> of_share;
    model::add_within(share.begin, share.end, piece, of_share);
    for (const model::FlatPiece& own : of_share)
      parts_.for_each_piece(rank, own, [&](const model::FlatPiece& of_whole) { pieces.push_back(of_whole); });
  }
}

void Replicas::add_weights(std::size_t program, Which which, Pieces& pieces) const {
  for_each_weight(*programs_[program], [&](const model::FlatPiece& piece) {
    add_piece(rank_of(program), piece, which, pieces.weights);
  });
}

void Replicas::add_moments(std::size_t program, Which which, Pieces& pieces) const {
  const pipeline::BertProgram& own = *programs_[program];
  for (const describe::ParameterShard::Bucket& bucket : own.shard().buckets()) {
    const auto add = [&](const tensor::TensorView& values_S, Of of, std::vector<model::FlatPiece>& to) {
      const tensor::TensorView values = values_S.rows(bucket.begin, bucket.num_own());
      add_piece(rank_of(program), {bucket.own.begin, values.span<float>()}, which, to, of);
    };
    const bool is_divided = divides_soap_ && which != Which::All;
    add(own.buffers().first_moments_S, Of::AllParameters, pieces.first_moments);
    add(own.buffers().second_moments_S, is_divided ? Of::OthersThanMatrices : Of::AllParameters,
        pieces.second_moments);
  }
  if (!divides_soap_ || which == Which::All) return;
  for (const workspace::FlatMatrices& matrix : soap_matrices(program)) {
    const tensor::TensorView values =
        own.buffers().second_moments_S.rows(matrix.begin, matrix.num_elements());
    parts_.for_each_piece(rank_of(program), {matrix.begin, values.span<float>()},
                          [&](const model::FlatPiece& piece) { pieces.second_moments.push_back(piece); });
  }
}

std::vector<workspace::FlatMatrices> Replicas::soap_matrices(std::size_t program) const {
  const describe::ParameterTable& table = programs_[program]->parameters();
  if (!divides_soap_) return memory::hidden_matrices(table);
  return memory::own_matrices(memory::divided_layers(table, schedule_, mesh_.place_of(rank_of(program))));
}

std::vector<StateTensor> Replicas::states_of(const Programs& programs) const {
  std::vector<const memory::KfacMemory*> of_kfac;
  std::vector<SoapRank> of_soap;
  for (std::size_t i = programs.first; i < programs.first + programs.count; ++i) {
    of_kfac.push_back(&programs_[i]->kfac());
    of_soap.push_back({.table = programs_[i]->parameters(),
                       .matrices = soap_matrices(i),
                       .state = programs_[i]->buffers().soap.state,
                       .is_written_by = [this, rank = rank_of(i)](std::size_t parameter) {
                         return divides_soap_ || (mesh_.replica_of(rank).index() == 0 &&
                                                  parts_.holder(rank, parameter).index == 0);
                       }});
  }
  if (optimizer_.kind == optim::OptimizerKind::Soap)
    return soap_states(parameters(), optimizer_.soap, of_soap);
  if (optimizer_.kind != optim::OptimizerKind::Kfac) return {};
  return kfac_states(parameters().model(), of_kfac,
                     optimizer_.kfac.average ? memory::RunningAverages::Yes : memory::RunningAverages::No);
}

CheckpointTensors Replicas::tensors_of(Pieces pieces, const Programs& programs) const {
  return {.table = parameters(),
          .weights = model::FlatPieces(std::move(pieces.weights)),
          .first_moments = model::FlatPieces(std::move(pieces.first_moments)),
          .second_moments = model::FlatPieces(std::move(pieces.second_moments)),
          .optimizer = optimizer_.update_kind(),
          .states = states_of(programs),
          .window = window_ ? &*window_ : nullptr};
}

CheckpointTensors Replicas::tensors() const {
  Pieces pieces;
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    const bool has_shard_of_weights = programs_[i]->buffers().are_weights_of_shard;
    const bool has_shard_of_moments = !programs_[i]->shard().is_whole();
    add_weights(i, has_shard_of_weights ? Which::OfReplica : Which::OfAllReplicas, pieces);
    add_moments(i, has_shard_of_moments ? Which::OfReplica : Which::OfAllReplicas, pieces);
  }
  return tensors_of(std::move(pieces), {0, programs_.size()});
}

void Replicas::load(const FoundCheckpoint& checkpoint) {
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    // Replicas in this process get theirs from the first, in begin().
    const bool is_copied = i > 0 && !whole_;
    const bool has_own_moments = !is_copied || !programs_[i]->shard().is_whole();
    const bool has_own_states = optimizer_.kind == optim::OptimizerKind::Kfac || divides_soap_;
    if (!has_own_moments && !has_own_states) continue;
    Pieces pieces;
    if (!is_copied) add_weights(i, Which::All, pieces);
    if (has_own_moments) add_moments(i, Which::All, pieces);
    train::load(checkpoint, tensors_of(std::move(pieces), {i, 1}));
  }
}

void Replicas::take_from_whole(std::size_t program, const model::FlatPiece& piece) const {
  if (!window_) return whole_->scatter(rank_of(program), piece);
  // The host cannot write where a GPU's values lie; what lies between tensors stays zero.
  std::vector<float> room(piece.values.size());
  whole_->scatter(rank_of(program), {piece.begin, room});
  window_->write(piece.values, [&](std::size_t first, std::span<float> part) {
    std::ranges::copy(std::span(room).subspan(first, part.size()), part.begin());
  });
}

void Replicas::write_weights(base::FunctionRef<void(const tensor::TensorView&)> write) {
  if (whole_) {
    write(whole_->weights_N());
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      for_each_weight(*programs_[i], [&](const model::FlatPiece& piece) { take_from_whole(i, piece); });
    }
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
        if (begun.soap.state && !divides_soap_)
          tensor::copy(program->stream(), begun.soap.state, buffers.soap.state);
      }
    }
    program->begin(num_updates);
  }
  if (first().gathers_weights()) put_gathered_weights();
  num_ended_ = first_step;
  executor_.emplace(schedule_, ranks_here(),
                    pipeline::ExecutorOptions{.hang_limit = hang_limit_,
                                              .first_step = first_step,
                                              .on_stuck = [this](const pipeline::Failure& hang) {
                                                if (on_stuck_) on_stuck_(hang);
                                              }});
}

void Replicas::put_gathered_weights() {
  gather_weights();
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    for (const describe::ParameterShard::Bucket& bucket : programs_[i]->shard().buckets()) {
      std::vector<float> room(static_cast<std::size_t>(bucket.elements.end - bucket.elements.begin));
      const model::FlatPiece piece{bucket.elements.begin, room};
      whole_->scatter(rank_of(i), piece);
      programs_[i]->put_weights(piece);
    }
  }
  // From now on every replica has what passes read.
  if (parts_.are_several()) return;
  whole_.reset();
  of_model_.reset();
}

std::vector<pipeline::LocalRank> Replicas::ranks_here() const {
  if (!processes_.is_alone()) {
    std::vector<pipeline::LocalRank> ranks;
    ranks.push_back(pipeline::rank_of_world(first(), processes_.communicator(), mesh_.num_slices()));
    return ranks;
  }
  std::vector<pipeline::StageProgram*> programs;
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) programs.push_back(program.get());
  return pipeline::local_ranks(programs, mesh_.num_slices(), emulated_link_);
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
    // A process has its replica's only.
    const std::size_t replica = processes_.is_alone() ? mesh_.replica_of(rank_of(rank)).index() : 0;
    programs_[rank]->begin_step(batches[replica], request.learning_rate, due);
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

MeasuredStep Replicas::measured() {
  MeasuredStep step{.times = {},
                    .cycle_step = (executor_->next_step() - 1) % schedule_.num_steps(),
                    .is_empty = std::vector<bool>(schedule_.problem.num_micro_batches),
                    .waited_seconds = recorded_.waited_seconds};
  for (const std::size_t micro_batch : recorded_.empty_micro_batches) step.is_empty[micro_batch] = true;
  step.times = executor_
                   ->measured([&](pipeline::MeasuredCycle& own) {
                     // Of the slices of a place the first stands for all.
                     const bool counts = mesh_.slice_of(rank_of(0)).index == 0;
                     if (!processes_.is_alone()) add_other_processes(processes_, counts, own, step.is_empty);
                   })
                   .times;
  return step;
}

}  // namespace plenum::train
