#include "plenum/train/replicas.h"

#include <chrono>
#include <new>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/timeline_of.h"
#include "plenum/tensor/copy.h"

namespace plenum::train {
namespace {

/// An action is a whole micro-batch: minutes of a large model on a slow machine are no hang.
constexpr std::chrono::minutes kHangLimit{30};

/// What a checkpoint holds, in the order of CheckpointTensors.
std::array<tensor::TensorView, 3> kept_buffers(const optim::OptimizerBuffers& buffers) {
  return {buffers.weights_N, buffers.first_moments_N, buffers.second_moments_N};
}

tensor::TensorView view_of(std::vector<float>& values) {
  return {values.data(), {static_cast<std::int64_t>(values.size())}};
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

Replicas::Replicas(const schedule::Schedule& schedule, const pipeline::BertProgramOptions& options)
    : schedule_(schedule) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    programs_.push_back(std::make_unique<pipeline::BertProgram>(schedule, schedule::Rank::at(rank), options));
  }
}

model::FlatWeights Replicas::weights() const {
  const optim::OptimizerBuffers& buffers = first().buffers();
  return {.exact_N = buffers.weights_N, .compute_N = buffers.compute_weights_N};
}

CheckpointTensors Replicas::tensors() {
  const std::array<tensor::TensorView, 3> buffers = kept_buffers(first().buffers());
  std::array<std::span<float>, 3> spans;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (is_on_gpu()) on_host_[i].resize(static_cast<std::size_t>(buffers[i].num_elements()));
    spans[i] = is_on_gpu() ? std::span(on_host_[i]) : buffers[i].span<float>();
  }
  return {.table = parameters(), .weights = spans[0], .first_moments = spans[1], .second_moments = spans[2]};
}

void Replicas::read_back() {
  if (!is_on_gpu()) return;
  tensors();  // makes room
  const std::array<tensor::TensorView, 3> buffers = kept_buffers(first().buffers());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    tensor::copy(first().stream(), buffers[i], view_of(on_host_[i]));
  }
  first().stream().wait();
}

void Replicas::begin(std::uint64_t first_step, std::uint64_t num_updates) {
  const std::array<tensor::TensorView, 3> begun = kept_buffers(first().buffers());
  std::vector<pipeline::StageProgram*> programs;
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) {
    const std::array<tensor::TensorView, 3> buffers = kept_buffers(program->buffers());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (is_on_gpu()) {
        tensor::copy(program->stream(), view_of(on_host_[i]), buffers[i]);
      } else if (program != programs_.front()) {
        tensor::copy(program->stream(), begun[i], buffers[i]);
      }
    }
    program->begin(num_updates);
    programs.push_back(program.get());
  }
  on_host_ = {};
  executor_.emplace(schedule_, std::move(programs),
                    pipeline::ExecutorOptions{.hang_limit = kHangLimit, .first_step = first_step});
}

void Replicas::step(std::span<const model::StepBatch> batches, double learning_rate) {
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    programs_[rank]->begin_step(batches[rank], learning_rate);
  }
  try {
    executor_->run(1);
  } catch (const pipeline::ExecutionError& error) {
    rethrow_for_user(error.failure());
    throw;
  }
}

void Replicas::set_waiting(bool is_waiting) {
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) program->set_waiting(is_waiting);
}

bool Replicas::is_on_gpu() const {
  return first().stream().device() == tensor::Device::Cuda;
}

trace::Timeline Replicas::timeline(std::string title) const {
  return schedule::timeline_of(schedule_, executor_->measured().times, std::move(title));
}

}  // namespace plenum::train
