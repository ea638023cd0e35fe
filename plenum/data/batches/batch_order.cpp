#include "plenum/data/batches/batch_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {
namespace {

/// The number of items whose expected size is the amount asked for, but no more items than there are.
StepRanges cut_steps(const packing::LengthHistogram& histogram, std::uint64_t num_items,
                     GlobalBatchSize size) {
  base::require(num_items >= 1, "there are no sequences to train on");
  base::require(size.amount >= 1, "the global batch must be at least 1");
  const bool in_tokens = size.unit == GlobalBatchSize::Unit::Tokens;
  const std::uint64_t total = in_tokens ? histogram.num_tokens() : histogram.num_sequences();
  if (size.amount >= total) return {num_items, num_items};
  // Rounded in integers, the same on every machine.
  __extension__ using uint128 = unsigned __int128;
  const auto rounded = static_cast<std::uint64_t>((uint128{size.amount} * num_items + total / 2) / total);
  return {num_items, std::max<std::uint64_t>(rounded, 1)};
}

void require_fit(const packing::PackingPlan& plan, const packing::LengthHistogram& histogram) {
  const packing::PackingProblem problem{
      .histogram = histogram, .capacity = plan.capacity, .depth = plan.depth};
  if (const auto fault = packing::find_fault(plan, problem)) {
    base::fail("the packing plan does not belong to these sequences: {}; pack them again", *fault);
  }
}

}  // namespace

EpochOrder::EpochOrder(const StepRanges& steps, const base::KeyedPermutation& shuffle,
                       std::optional<packing::VirtualPacks> packs)
    : steps_(steps), shuffle_(shuffle), packs_(std::move(packs)) {}

GlobalBatch EpochOrder::batch(std::uint64_t step) const {
  const PositionRange positions = steps_.range(step);
  GlobalBatch batch;
  for (std::uint64_t position = positions.begin; position < positions.end; ++position) {
    const std::uint64_t item = shuffle_(position);
    if (packs_) {
      batch.pack_starts.push_back(batch.sequence_ids.size());
      packs_->append_pack(item, batch.sequence_ids);
    } else {
      batch.sequence_ids.push_back(item);
    }
  }
  if (packs_) batch.pack_starts.push_back(batch.sequence_ids.size());
  return batch;
}

BatchOrder::BatchOrder(packing::LengthHistogram histogram, GlobalBatchSize size, std::uint64_t seed)
    : histogram_(std::move(histogram)),
      seed_(seed),
      steps_(cut_steps(histogram_, histogram_.num_sequences(), size)) {}

BatchOrder::BatchOrder(packing::LengthHistogram histogram, packing::PackingPlan plan, GlobalBatchSize size,
                       std::uint64_t seed)
    : histogram_(std::move(histogram)),
      plan_(std::move(plan)),
      seed_(seed),
      steps_(cut_steps(histogram_, plan_->num_packs(), size)) {
  require_fit(*plan_, histogram_);
}

double BatchOrder::expected_tokens_per_step() const {
  return static_cast<double>(histogram_.num_tokens()) / static_cast<double>(num_items()) *
         static_cast<double>(items_per_step());
}

EpochOrder BatchOrder::epoch(std::uint64_t epoch) const {
  const base::KeyedPermutation shuffle(base::RandomFunction(seed_, base::Purpose::Order, epoch), 0,
                                       num_items());
  std::optional<packing::VirtualPacks> packs;
  if (plan_) packs.emplace(*plan_, histogram_, seed_, epoch);
  return {steps_, shuffle, std::move(packs)};
}

GlobalBatch BatchOrder::batch(std::uint64_t epoch, std::uint64_t step) const {
  return this->epoch(epoch).batch(step);
}

}  // namespace plenum::data
