#include "plenum/train/step_works.h"

#include <algorithm>
#include <utility>

#include "plenum/train/run_schedule.h"

namespace plenum::train {
namespace {

data::TrainingDataOptions without_cut(data::TrainingDataOptions options) {
  options.micro_batch_tokens.reset();
  options.micro_batches.reset();
  return options;
}

}  // namespace

plan::StepWork step_work(const data::StepBatchSource& batches, const data::StepShares& shares) {
  const data::StepArrangement arrangement = batches.arrange(shares);
  const std::vector<batch::Work> works = batches.work_of(arrangement);
  plan::StepWork result;
  result.micro_batches.resize(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) result.micro_batches[i].work = works[i];
  for (std::size_t rank = 0; rank < batches.num_ranks(); ++rank) {
    std::size_t id = (rank + 1) * batches.micro_batches_per_rank();
    for (const data::MicroBatchPlan& plan : arrangement.micro_batches[rank])
      result.micro_batches[--id].rows = plan.num_rows;
  }
  return result;
}

StepWorks::StepWorks(const data::SequenceSource& sequences, data::TrainingDataOptions options,
                     const describe::ModelConfig& model, std::uint64_t seed, double attention_cost)
    : options_(without_cut(std::move(options))),
      batches_(sequences, options_, model, 1, seed, attention_cost) {}

batch::Work StepWorks::typical() const {
  return typical_work(batches_.sequences(), options_);
}

plan::StepLimits StepWorks::limits(std::size_t replicas, const batch::MicroBatchCut& cut) const {
  const data::StepBounds bounds = batches_.bounds_with(replicas, cut);
  return {.micro_batches_per_replica = static_cast<std::size_t>(bounds.micro_batches_per_rank),
          .capacity = bounds.capacity};
}

std::vector<plan::StepWork> StepWorks::sample(std::size_t replicas, const batch::MicroBatchCut& cut,
                                              std::size_t num_steps) const {
  const data::StepBatchSource batches = batches_.divided(replicas, cut);
  // The last two steps of an epoch may be smaller than all others.
  constexpr std::uint64_t kUnlike = 2;
  const std::uint64_t num_alike =
      batches.steps_per_epoch() > kUnlike ? batches.steps_per_epoch() - kUnlike : 1;
  constexpr std::size_t kManyReplicas = 256;
  const auto num_sampled = std::min<std::uint64_t>(replicas < kManyReplicas ? num_steps : 1, num_alike);
  std::vector<data::StepShares>& shares = shares_[replicas];
  if (shares.size() != num_sampled) {
    shares.clear();
    for (std::uint64_t i = 0; i < num_sampled; ++i)
      shares.push_back(batches.share(i * num_alike / num_sampled));
  }
  std::vector<plan::StepWork> works;
  for (const data::StepShares& of_step : shares) works.push_back(step_work(batches, of_step));
  return works;
}

}  // namespace plenum::train
