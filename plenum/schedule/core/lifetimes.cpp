#include "plenum/schedule/core/lifetimes.h"

#include <algorithm>
#include <limits>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

constexpr std::int64_t kUnwritten = std::numeric_limits<std::int64_t>::max();
constexpr Interval kUnused{kUnwritten, std::numeric_limits<std::int64_t>::min()};

/// Which tenants to look at.
struct Wanted {
  bool is_kept_only = false;
  KeptFor kept_for = KeptFor::Curvature;
};

class LifetimesOfRank {
 public:
  LifetimesOfRank(const Dataflow& dataflow, Rank rank, Wanted wanted)
      : schedule_(dataflow.schedule()),
        layers_(dataflow.layers()),
        program_(schedule_.ranks[rank.index()]),
        uses_of_(dataflow, rank),
        wanted_(wanted),
        kept_kind_(schedule_.problem.recomputation == Recomputation::Full ? TenantKind::Recomputed
                                                                          : TenantKind::Kept),
        cycle_time_(cycle_time(schedule_, rank)) {
    for (const StageId stage : program_.stages) {
      first_place_.push_back({stage, num_places_});
      num_places_ += wanted.is_kept_only ? layers_.count(stage) : 2 + 4 * layers_.count(stage);
    }
    std::size_t end = 0;
    for (const LaneProgram& lane : program_.lanes) {
      for (const Action& action : lane.actions()) {
        if (!traits_of(action.type).has_micro_batch || counts_rounds(action.type)) continue;
        first_micro_batch_ = std::min(first_micro_batch_, action.micro_batch.index());
        end = std::max(end, action.micro_batch.index() + 1);
      }
    }
    num_micro_batches_ = end - std::min(first_micro_batch_, end);
    times_.assign(schedule_.num_steps() * num_micro_batches_ * num_places_, kUnused);
  }

  void add_compute_lane() {
    for_each(Lane::Compute, [&](const Action& action, std::size_t step, std::size_t position) {
      if (is_curvature(action.type) && wanted_.kept_for == KeptFor::Backward) return;
      const auto begin = static_cast<std::int64_t>(2 * position);
      for_each_use(action, step, [&](const TenantUse& use, Interval& time, std::int64_t cycles_later) {
        if (use.is_written) time.begin = std::min(time.begin, begin);
        time.end = std::max(time.end, begin + 1 + cycles_later);
      });
    });
  }

  void add_messages(const MessageBounds& bounds) {
    for_each(Lane::Pipeline, [&](const Action& action, std::size_t step, std::size_t position) {
      for_each_use(action, step, [&](const TenantUse& use, Interval& time, std::int64_t) {
        if (use.is_written) {
          time.begin = std::min(time.begin, 2 * bounds.posted_after[position] - 1);
        } else {
          time.end = std::max(time.end, 2 * bounds.received_before[position]);
        }
      });
    });
  }

  std::vector<Lifetime> finish() const {
    std::vector<Lifetime> lifetimes;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (times_[i].begin == kUnwritten || times_[i].end <= times_[i].begin) continue;
      const std::size_t row = i / num_places_;
      Tenant tenant = tenant_at(i % num_places_);
      tenant.micro_batch = MicroBatchId::at(first_micro_batch_ + row % num_micro_batches_);
      lifetimes.push_back({tenant, static_cast<std::uint32_t>(row / num_micro_batches_), times_[i]});
    }
    return lifetimes;
  }

 private:
  struct StagePlace {
    StageId stage;
    std::size_t first = 0;
  };

  template <typename Visit>
  void for_each(Lane lane, Visit visit) const {
    const LaneProgram& program = program_.lane(lane);
    for (std::size_t step = 0; step < schedule_.num_steps(); ++step) {
      std::size_t position = program.step_begin(step);
      for (const Action& action : program.step(step)) visit(action, step, position++);
    }
  }

  /// What belongs to an earlier cycle is looked at as if this one had made it: then its reader stands in a
  /// later cycle.
  template <typename Visit>
  void for_each_use(const Action& action, std::size_t step, Visit visit) {
    if (!traits_of(action.type).has_micro_batch || counts_rounds(action.type)) return;
    const std::size_t num_steps = schedule_.num_steps();
    const std::size_t cycles = action.age > step ? (action.age - step + num_steps - 1) / num_steps : 0;
    const std::size_t of_step = step + cycles * num_steps - action.age;
    const std::size_t row = of_step * num_micro_batches_ + action.micro_batch.index() - first_micro_batch_;
    uses_of_.of(action, uses_);
    for (const TenantUse& use : uses_) {
      if (wanted_.is_kept_only && use.tenant.kind != kept_kind_) continue;
      visit(use, times_[row * num_places_ + place_of(use.tenant)],
            static_cast<std::int64_t>(cycles) * cycle_time_);
    }
  }

  std::size_t place_of(const Tenant& tenant) const {
    const auto held =
        std::find_if(first_place_.begin(), first_place_.end(),
                     [&](const StagePlace& candidate) { return candidate.stage == tenant.stage; });
    base::check(held != first_place_.end(), "the rank must hold stage {}", tenant.stage.value);
    const std::size_t layer = tenant.layer.index() - layers_.first(tenant.stage).index();
    if (wanted_.is_kept_only) return held->first + layer;
    switch (tenant.kind) {
      case TenantKind::Output:
        return held->first;
      case TenantKind::OutputGradient:
        return held->first + 1;
      case TenantKind::Kept:
        return held->first + 2 + 4 * layer;
      case TenantKind::Input:
        return held->first + 3 + 4 * layer;
      case TenantKind::InputGradient:
        return held->first + 4 + 4 * layer;
      case TenantKind::Recomputed:
        return held->first + 5 + 4 * layer;
    }
    return 0;
  }

  /// The other way round.
  Tenant tenant_at(std::size_t place) const {
    std::size_t held = first_place_.size() - 1;
    while (first_place_[held].first > place) --held;
    const StageId stage = first_place_[held].stage;
    const std::size_t offset = place - first_place_[held].first;
    const auto of_layer = [&](TenantKind kind, std::size_t layer) -> Tenant {
      return {kind, stage, {}, LayerId::at(layers_.first(stage).index() + layer)};
    };
    if (wanted_.is_kept_only) return of_layer(kept_kind_, offset);
    if (offset < 2) return of_layer(offset == 0 ? TenantKind::Output : TenantKind::OutputGradient, 0);
    constexpr TenantKind kKinds[] = {TenantKind::Kept, TenantKind::Input, TenantKind::InputGradient,
                                     TenantKind::Recomputed};
    return of_layer(kKinds[(offset - 2) % 4], (offset - 2) / 4);
  }

  const Schedule& schedule_;
  const StageLayers& layers_;
  const RankProgram& program_;
  TenantUses uses_of_;
  Wanted wanted_;
  TenantKind kept_kind_;
  std::int64_t cycle_time_;
  std::vector<StagePlace> first_place_;
  std::size_t num_places_ = 0;  ///< of a micro-batch in a step
  std::size_t first_micro_batch_ = std::numeric_limits<std::size_t>::max();
  std::size_t num_micro_batches_ = 0;
  std::vector<Interval> times_;
  std::vector<TenantUse> uses_;
};

}  // namespace

std::vector<Lifetime> lifetimes(const Dataflow& dataflow, Rank rank, const MessageBounds& messages) {
  LifetimesOfRank of_rank(dataflow, rank, {});
  of_rank.add_compute_lane();
  of_rank.add_messages(messages);
  return of_rank.finish();
}

std::vector<Lifetime> kept_lifetimes(const Dataflow& dataflow, Rank rank, KeptFor kept_for) {
  LifetimesOfRank of_rank(dataflow, rank, {.is_kept_only = true, .kept_for = kept_for});
  of_rank.add_compute_lane();
  return of_rank.finish();
}

std::int64_t cycle_time(const Schedule& schedule, Rank rank) {
  const std::size_t num_actions = schedule.ranks[rank.index()].lane(Lane::Compute).actions().size();
  return static_cast<std::int64_t>(2 * std::max<std::size_t>(num_actions, 1));
}

std::vector<Lifetime> by_micro_batch(std::span<const Lifetime> lifetimes, const StageLayers& layers) {
  std::vector<Lifetime> whole;
  for (const Lifetime& life : lifetimes) {
    const Tenant tenant{TenantKind::Kept, life.tenant.stage, life.tenant.micro_batch,
                        layers.first(life.tenant.stage)};
    if (whole.empty() || whole.back().step != life.step || whole.back().tenant != tenant) {
      whole.push_back({tenant, life.step, life.time});
      continue;
    }
    Interval& time = whole.back().time;
    time.begin = std::min(time.begin, life.time.begin);
    time.end = std::max(time.end, life.time.end);
  }
  return whole;
}

std::size_t most_at_once(std::span<const Lifetime> lifetimes, std::int64_t cycle_time) {
  std::vector<Interval> times;
  times.reserve(lifetimes.size());
  for (const Lifetime& life : lifetimes) times.push_back(life.time);
  return most_at_once(times, cycle_time);
}

}  // namespace plenum::schedule
