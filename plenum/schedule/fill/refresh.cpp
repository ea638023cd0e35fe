#include "plenum/schedule/fill/refresh.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"
#include "plenum/schedule/simulate/checked_costs.h"

namespace plenum::schedule {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

/// The steps that a lane needs for its part of a refresh.
double steps_of(double work, double idle, Rank rank, std::string_view lane) {
  if (work == 0) return 0;
  base::require(idle > 0, "rank {} has no idle time to {}", rank.value, lane);
  return work / idle;
}

}  // namespace

Refresh::Refresh(const SteadyStep& step, const Filler& filler, const CostModel& costs) {
  collect(step, filler, costs);
  link(step);
  find_heights();
}

void Refresh::collect(const SteadyStep& step, const Filler& filler, const CostModel& costs) {
  const std::size_t num_ranks = step.schedule().ranks.size();
  compute_seconds_.assign(num_ranks, 0);
  reduce_seconds_.assign(num_ranks, 0);
  std::vector<WorkItem> work;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    const Rank rank = Rank::at(r);
    work.clear();
    filler.add_refresh(step.dataflow(), rank, work);
    for (const WorkItem& item : work) {
      const ActionTraits& traits = traits_of(item.action.type);
      base::check(item.action.age == 0 && traits.may_be_stale, "a work item may be stale and has age 0: {}",
                  traits.name);
      base::check(traits.is_splittable || item.max_pieces == 1, "the work cannot be split: {}", traits.name);
      base::check(item.max_pieces > 0 && item.max_pieces <= kMaxPieces, "a work item has 1 to 254 pieces: {}",
                  item.max_pieces);
      std::vector<Rank> ranks = {rank};
      if (traits.is_collective) {
        const std::span<const Rank> group = step.dataflow().group(item.action);
        // The first member stands for all.
        if (group.front() != rank) continue;
        ranks.assign(group.begin(), group.end());
      }
      const double seconds = checked_seconds(costs, rank, item.action);
      base::check(traits.is_collective == (traits.lane == Lane::DataParallel),
                  "work items compute or reduce: {}", traits.name);
      std::vector<double>& lane_seconds = traits.is_collective ? reduce_seconds_ : compute_seconds_;
      for (const Rank member : ranks) lane_seconds[member.index()] += seconds;
      items_.push_back({.work = item, .ranks = std::move(ranks), .seconds = seconds});
    }
  }
}

void Refresh::link(const SteadyStep& step) {
  const Dataflow& dataflow = step.dataflow();
  for (std::size_t rank = 0; rank < step.schedule().ranks.size(); ++rank) {
    makers_.emplace_back(dataflow.num_values(Rank::at(rank)), kNobody);
  }
  std::vector<ValueRef> values;
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    for (const Rank rank : items_[i].ranks) {
      dataflow.outputs(rank, items_[i].work.action, values);
      for (const ValueRef& value : values) makers_[rank.index()][value.index] = i;
    }
  }
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    item.ready = 0;
    item.kept_from = std::numeric_limits<double>::infinity();
    for (const Rank rank : item.ranks) {
      dataflow.inputs(rank, item.work.action, values);
      for (const ValueRef& value : values) {
        const std::uint32_t maker = makers_[rank.index()][value.index];
        const std::optional<double> made = step.made(rank, value.index);
        if (maker != kNobody) {
          item.predecessors.push_back(maker);
          items_[maker].successors.push_back(i);
        } else if (made) {
          item.ready = std::max(item.ready, *made);
          item.ready_order = std::max(item.ready_order, step.made_order(rank, value.index));
          item.kept_from = std::min(item.kept_from, step.released(rank, value.index));
        } else {
          base::fail("{} on rank {} needs {}, which nothing makes",
                     action_text(item.work.action, dataflow.layers()), rank.value,
                     dataflow.describe(rank, value.index));
        }
      }
    }
  }
}

/// A rank that makes nothing of what a collective sums takes part in it when the inputs of what was dropped
/// exist.
void Refresh::wait_for_dropped(std::uint32_t collective, const std::vector<bool>& is_dropped,
                               Item& kept) const {
  if (kept.ranks.size() == 1) return;
  for (const Rank rank : kept.ranks) {
    const auto is_kept_of_rank = [&](std::uint32_t i) {
      return !is_dropped[i] && items_[i].ranks.front() == rank;
    };
    if (std::ranges::any_of(items_[collective].predecessors, is_kept_of_rank)) continue;
    for (const std::uint32_t i : items_[collective].predecessors) {
      if (items_[i].ranks.front() != rank) continue;
      kept.ready = std::max(kept.ready, items_[i].ready);
      kept.ready_order = std::max(kept.ready_order, items_[i].ready_order);
    }
  }
}

Refresh Refresh::without(const std::vector<bool>& is_dropped, const std::vector<std::size_t>& steps) const {
  std::vector<std::uint32_t> new_index(items_.size(), kNobody);
  Refresh rest;
  rest.compute_seconds_.assign(compute_seconds_.size(), 0);
  rest.reduce_seconds_.assign(reduce_seconds_.size(), 0);
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    if (is_dropped[i]) continue;
    new_index[i] = static_cast<std::uint32_t>(rest.items_.size());
    rest.items_.push_back(items_[i]);
    rest.items_.back().step = steps[i];
    const bool is_collective = traits_of(items_[i].work.action.type).is_collective;
    std::vector<double>& lane_seconds = is_collective ? rest.reduce_seconds_ : rest.compute_seconds_;
    for (const Rank rank : items_[i].ranks) lane_seconds[rank.index()] += items_[i].seconds;
  }
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    if (!is_dropped[i]) wait_for_dropped(i, is_dropped, rest.items_[new_index[i]]);
  }
  const auto renumber = [&new_index](std::vector<std::uint32_t>& indices) {
    for (std::uint32_t& index : indices) index = new_index[index];
    std::erase(indices, kNobody);
  };
  for (Item& item : rest.items_) {
    renumber(item.predecessors);
    renumber(item.successors);
    item.height = 0;
  }
  for (const std::vector<std::uint32_t>& of_rank : makers_) {
    std::vector<std::uint32_t>& makers = rest.makers_.emplace_back(of_rank);
    for (std::uint32_t& maker : makers) {
      if (maker != kNobody) maker = new_index[maker];
    }
  }
  rest.find_heights();
  return rest;
}

std::optional<std::uint32_t> Refresh::maker(Rank rank, std::uint32_t value) const {
  const std::uint32_t item = makers_[rank.index()][value];
  if (item == kNobody) return std::nullopt;
  return item;
}

void Refresh::find_heights() {
  std::vector<std::size_t> num_open(items_.size());
  std::vector<std::uint32_t> done;
  for (std::uint32_t i = 0; i < items_.size(); ++i) {
    num_open[i] = items_[i].successors.size();
    if (num_open[i] == 0) done.push_back(i);
  }
  for (std::size_t next = 0; next < done.size(); ++next) {
    Item& item = items_[done[next]];
    for (const std::uint32_t successor : item.successors) {
      item.height = std::max(item.height, items_[successor].height);
    }
    item.height += item.seconds;
    for (const std::uint32_t predecessor : item.predecessors) {
      if (--num_open[predecessor] == 0) done.push_back(predecessor);
    }
  }
  base::check(done.size() == items_.size(), "work items wait for each other in a circle: {} of {} do not",
              done.size(), items_.size());
}

double least_refresh_steps(const SteadyStep& step, const Refresh& refresh) {
  double bound = 1;
  for (std::size_t r = 0; r < step.schedule().ranks.size(); ++r) {
    const Rank rank = Rank::at(r);
    bound = std::max({bound, steps_of(refresh.compute_seconds(rank), step.bubble_seconds(rank), rank, "fill"),
                      steps_of(refresh.reduce_seconds(rank), step.data_idle_seconds(rank), rank, "reduce")});
  }
  return bound;
}

}  // namespace plenum::schedule
