#include "tests/pipeline/toy_memory.h"

#include <algorithm>
#include <limits>

#include "plenum/base/check.h"
#include "plenum/schedule/check/check.h"

namespace plenum::pipeline {

using base::check;
using schedule::Action;
using schedule::kNumTenantKinds;
using schedule::Lifetime;
using schedule::Rank;
using schedule::RankSlots;
using schedule::Tenant;
using schedule::TenantKind;
using schedule::TenantUse;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

RankSlots unshared_slots(const schedule::Dataflow& dataflow, Rank rank) {
  const schedule::Schedule& schedule = dataflow.schedule();
  const std::size_t num_messages =
      schedule.ranks[rank.index()].lane(schedule::Lane::Pipeline).actions().size();
  const std::vector<std::int64_t> unknown(num_messages, 0);
  std::vector<Lifetime> lifetimes = schedule::lifetimes(dataflow, rank, {unknown, unknown});
  const std::int64_t cycle = schedule::cycle_time(schedule, rank);
  const std::int64_t num_cycles = schedule.problem.staleness + 3;
  for (Lifetime& life : lifetimes) life.time = {0, num_cycles * cycle};
  return {lifetimes, schedule.num_steps(), cycle};
}

}  // namespace

RankSlots toy_slots(const schedule::Dataflow& dataflow, Rank rank) {
  const bool is_right = schedule::check(dataflow.schedule()).violations.empty();
  return is_right ? RankSlots(schedule::EventOrder(dataflow), rank) : unshared_slots(dataflow, rank);
}

ToyMemory::ToyMemory(const schedule::Dataflow& dataflow, Rank rank, const ToyModel& model, RankSlots slots)
    : dataflow_(dataflow),
      model_(model),
      plan_(std::move(slots)),
      uses_of_(dataflow, rank),
      slots_(kNumTenantKinds) {
  const schedule::Schedule& schedule = dataflow.schedule();
  for (std::size_t i = 0; i < schedule.problem.num_micro_batches; ++i) {
    num_tokens_.push_back(toy_tokens(model, schedule.problem, 0, i).size());
  }
  const std::size_t most_tokens = *std::max_element(num_tokens_.begin(), num_tokens_.end());
  for (std::size_t k = 0; k < kNumTenantKinds; ++k) {
    const auto kind = static_cast<TenantKind>(k);
    slots_[k].resize(plan_.num_slots(kind));
    for (Slot& slot : slots_[k]) slot.values.assign(most_tokens * elements_per_token(kind), kNan);
  }
  count_readers(schedule.ranks[rank.index()]);
}

void ToyMemory::count_readers(const schedule::RankProgram& program) {
  const std::size_t num_steps = dataflow_.schedule().num_steps();
  std::vector<TenantUse> uses;
  for (const schedule::LaneProgram& lane : program.lanes) {
    for (std::size_t step = 0; step < num_steps; ++step) {
      for (const Action& action : lane.step(step)) {
        uses_of_.of(action, uses);
        for (const TenantUse& use : uses) {
          if (use.is_written) continue;
          Readers& readers = readers_[key_of(use.tenant, step + schedule::kMaxAge * num_steps - action.age)];
          ++(schedule::is_send(action.type) ? readers.by_sends : readers.on_rank);
        }
      }
    }
  }
}

std::size_t ToyMemory::elements_per_token(TenantKind kind) const {
  switch (kind) {
    case TenantKind::Kept:
    case TenantKind::Recomputed:
      return 3 * model_.maps_per_layer * model_.width;
    case TenantKind::OutputGradient:
      return model_.width + model_.vocabulary;
    default:
      return model_.width;
  }
}

ToyMemory::Key ToyMemory::key_of(const Tenant& tenant, std::uint64_t step) const {
  return {tenant.kind, tenant.stage, tenant.micro_batch, tenant.layer,
          step % dataflow_.schedule().num_steps()};
}

ToyMemory::Slot& ToyMemory::slot_of(const Tenant& tenant, std::uint64_t step) {
  return slots_[static_cast<std::size_t>(tenant.kind)][plan_.slot(tenant, step)];
}

void ToyMemory::take(const Tenant& tenant, std::uint64_t step) {
  Slot& slot = slot_of(tenant, step);
  if (slot.tenant == tenant && slot.step == step) return;
  check(!slot.tenant || slot.left.on_rank == 0,
        "the slot of micro-batch {} in step {} is still to be read: micro-batch {} of step {}",
        tenant.micro_batch.value, step, slot.tenant ? slot.tenant->micro_batch.value : 0, slot.step);
  std::fill(slot.values.begin(), slot.values.end(), kNan);
  slot.tenant = tenant;
  slot.step = step;
  slot.left = readers_[key_of(tenant, step)];
}

void ToyMemory::begin(const ActionRun& run) {
  std::vector<TenantUse> uses;
  uses_of_.of(run.action, uses);
  const std::lock_guard lock(mutex_);
  for (const TenantUse& use : uses) {
    if (use.is_written) take(use.tenant, run.data_step());
  }
}

void ToyMemory::end(const ActionRun& run) {
  const bool is_send = schedule::is_send(run.action.type);
  std::vector<TenantUse> uses;
  uses_of_.of(run.action, uses);
  const std::lock_guard lock(mutex_);
  for (const TenantUse& use : uses) {
    if (use.is_written) continue;
    Slot& slot = slot_of(use.tenant, run.data_step());
    const bool lies_there = slot.tenant == use.tenant && slot.step == run.data_step();
    if (is_send && !lies_there) continue;
    std::size_t& left = is_send ? slot.left.by_sends : slot.left.on_rank;
    check(lies_there && left > 0, "what is read has been given back");
    --left;
    if (slot.left.on_rank > 0 || slot.left.by_sends > 0) continue;
    std::fill(slot.values.begin(), slot.values.end(), kNan);
    slot.tenant.reset();
  }
}

std::span<double> ToyMemory::at(const Tenant& tenant, std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slot_of(tenant, step);
  check(slot.tenant == tenant && slot.step == step,
        "what is read is not there: kind {} of layer {} for micro-batch {} of step {}",
        static_cast<int>(tenant.kind), tenant.layer.value, tenant.micro_batch.value, step);
  return std::span(slot.values)
      .first(num_tokens_[tenant.micro_batch.index()] * elements_per_token(tenant.kind));
}

}  // namespace plenum::pipeline
