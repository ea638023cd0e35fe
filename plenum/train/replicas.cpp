#include "plenum/train/replicas.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/timeline_of.h"

namespace plenum::train {
namespace {

/// An action is a whole micro-batch: minutes of a large model on a slow machine are no hang.
constexpr std::chrono::minutes kHangLimit{30};

void copy(const tensor::TensorView& from, const tensor::TensorView& to) {
  std::ranges::copy(from.span<float>(), to.span<float>().begin());
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

CheckpointTensors Replicas::tensors() const {
  return {.table = parameters(),
          .weights = buffers().weights_N.span<float>(),
          .first_moments = buffers().first_moments_N.span<float>(),
          .second_moments = buffers().second_moments_N.span<float>()};
}

void Replicas::begin(std::uint64_t first_step, std::uint64_t num_updates) {
  std::vector<pipeline::StageProgram*> programs;
  for (const std::unique_ptr<pipeline::BertProgram>& program : programs_) {
    program->set_num_updates(num_updates);
    programs.push_back(program.get());
    if (program == programs_.front()) continue;
    copy(buffers().weights_N, program->buffers().weights_N);
    copy(buffers().first_moments_N, program->buffers().first_moments_N);
    copy(buffers().second_moments_N, program->buffers().second_moments_N);
  }
  executor_.emplace(schedule_, std::move(programs),
                    pipeline::ExecutorOptions{.hang_limit = kHangLimit, .first_step = first_step});
}

const pipeline::StepOutcome& Replicas::step(std::span<const model::StepBatch> batches, double learning_rate) {
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
    programs_[rank]->begin_step(batches[rank], learning_rate);
  }
  try {
    executor_->run(1);
  } catch (const pipeline::ExecutionError& error) {
    rethrow_for_user(error.failure());
    throw;
  }
  return first().outcome();
}

trace::Timeline Replicas::timeline(std::string title) const {
  return schedule::timeline_of(schedule_, executor_->measured().times, std::move(title));
}

}  // namespace plenum::train
