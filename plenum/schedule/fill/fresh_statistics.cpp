#include "plenum/schedule/fill/fresh_statistics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

constexpr std::int64_t kNothingBehind = std::numeric_limits<std::int64_t>::max();

}  // namespace

FreshStatisticsPlacer::FreshStatisticsPlacer(const SteadyStep& step, const Refresh& refresh)
    : step_(step), refresh_(refresh), ranks_(step.schedule().ranks.size()) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) find_gaps(Rank::at(rank));
  collect();
  base::require(num_micro_batches_ > 0, "only statistics of single micro-batches can be taken at once");
}

void FreshStatisticsPlacer::find_gaps(Rank rank) {
  RankGaps& found = ranks_[rank.index()];
  const std::vector<Gap> gaps = step_.gaps(rank);
  const std::size_t num_actions = step_.times(rank, Lane::Compute).size();
  for (const Gap& gap : gaps) {
    const bool is_last = gap.position >= num_actions;
    if (gap.end <= gap.begin && !is_last) continue;
    found.gaps.push_back(gap);
    found.next_order.push_back(is_last ? kNothingBehind : step_.order(rank, Lane::Compute, gap.position));
  }
}

void FreshStatisticsPlacer::collect() {
  std::vector<std::map<std::pair<StageId, MicroBatchId>, OfMicroBatch>> found(ranks_.size());
  for (std::uint32_t i = 0; i < refresh_.items().size(); ++i) {
    const Refresh::Item& item = refresh_.items()[i];
    const Action& action = item.work.action;
    if (!is_curvature(action.type)) continue;
    OfMicroBatch& of = found[item.ranks.front().index()][{action.stage, action.micro_batch}];
    of.ready = std::max(of.ready, item.ready);
    (action.type == ActionType::CurvatureA ? of.a : of.b).push_back(i);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (auto& [key, of] : found[rank]) {
      std::vector<StageOfRank>& stages = ranks_[rank].stages;
      if (stages.empty() || stages.back().stage != key.first) stages.push_back({key.first, {}});
      stages.back().micro_batches.push_back(std::move(of));
    }
    for (StageOfRank& stage : ranks_[rank].stages) {
      std::stable_sort(stage.micro_batches.begin(), stage.micro_batches.end(),
                       [](const OfMicroBatch& a, const OfMicroBatch& b) { return a.ready < b.ready; });
      num_micro_batches_ = std::max(num_micro_batches_, stage.micro_batches.size());
    }
  }
}

std::vector<std::uint32_t> FreshStatisticsPlacer::items_of(const Windows& windows) const {
  std::vector<std::uint32_t> items;
  for (const StageWindows& of : windows) {
    const std::vector<OfMicroBatch>& all = of.stage->micro_batches;
    for (std::size_t i = of.a.first; i < of.a.first + of.a.count; ++i)
      items.insert(items.end(), all[i].a.begin(), all[i].a.end());
    for (std::size_t i = of.b.first; i < of.b.first + of.b.count; ++i)
      items.insert(items.end(), all[i].b.begin(), all[i].b.end());
  }
  std::stable_sort(items.begin(), items.end(), [this](std::uint32_t a, std::uint32_t b) {
    return refresh_.items()[a].ready < refresh_.items()[b].ready;
  });
  return items;
}

std::size_t FreshStatisticsPlacer::part_of(const Action& action, const LayerParts& parts) const {
  const StageLayers& layers = step_.dataflow().layers();
  const std::size_t layer = action.first_layer.index() - layers.first(action.stage).index();
  return parts.part(layer, layers.count(action.stage));
}

FreshStatisticsPlacer::Fit FreshStatisticsPlacer::fit(const RankGaps& rank, const Windows& windows,
                                                      const LayerParts& parts) const {
  std::vector<std::vector<std::uint32_t>> of_parts(parts.count);
  for (const std::uint32_t i : items_of(windows))
    of_parts[part_of(refresh_.items()[i].work.action, parts)].push_back(i);
  Fit result;
  for (std::size_t part = 0; part < parts.count; ++part)
    fit_part(rank, std::move(of_parts[part]), parts.step(part), result);
  return result;
}

/// Each item into the first gap that still has room for it; those for which none has behind the last one.
void FreshStatisticsPlacer::fit_part(const RankGaps& rank, std::vector<std::uint32_t> items,
                                     std::size_t in_step, Fit& fit) const {
  const double rounding = SteadyStep::kRounding * step_.seconds();
  const double offset = static_cast<double>(in_step) * step_.seconds();
  const auto put = [&](std::uint32_t i, const Gap& gap, double start) {
    const double end = start + refresh_.items()[i].seconds;
    fit.placed.push_back({.item = i,
                          .step = static_cast<std::uint32_t>(in_step),
                          .position = static_cast<std::uint32_t>(gap.position),
                          .start = start + offset,
                          .end = end + offset});
    return end;
  };
  double cursor = 0;
  for (std::size_t g = 0; g < rank.gaps.size() && !items.empty(); ++g) {
    const Gap& gap = rank.gaps[g];
    cursor = gap.begin;
    std::erase_if(items, [&](std::uint32_t i) {
      const Refresh::Item& item = refresh_.items()[i];
      const double start = std::max(cursor, item.ready);
      if (item.ready_order >= rank.next_order[g] || start + item.seconds > gap.end + rounding) return false;
      cursor = put(i, gap, start);
      return true;
    });
  }
  for (const std::uint32_t i : items) {
    fit.beyond += refresh_.items()[i].seconds;
    cursor = put(i, rank.gaps.back(), cursor);
  }
}

/// So many micro-batches of a stage, or all it has: the last ones, or those so many before them.
FreshStatisticsPlacer::Window FreshStatisticsPlacer::latest(const StageOfRank& stage, std::size_t count,
                                                            std::size_t earlier) {
  const std::size_t num_own = stage.micro_batches.size();
  const std::size_t own_count = std::min(count, num_own);
  return {num_own - own_count - std::min(earlier, num_own - own_count), own_count};
}

/// So many micro-batches of each stage, or as many as it has and may cover; nothing if there is no room for
/// them.
std::optional<FreshStatisticsPlacer::Windows> FreshStatisticsPlacer::latest_that_fit(
    const Choice& choice, std::span<const StageOfRank* const> stages, std::size_t count) const {
  for (std::size_t earlier = 0; earlier < num_micro_batches_; ++earlier) {
    Windows windows;
    for (const StageOfRank* stage : stages) {
      const Window window = latest(*stage, std::min(count, choice.most[stage->stage.index()].b), earlier);
      windows.push_back({stage, window, window});
    }
    if (fit(choice.rank, windows, choice.parts).beyond == 0) return windows;
  }
  return std::nullopt;
}

FreshStatisticsPlacer::Windows FreshStatisticsPlacer::most_that_fit(const Choice& choice) const {
  std::vector<const StageOfRank*> stages;
  std::size_t most_of_any = 0;
  for (const StageOfRank& stage : choice.rank.stages) {
    stages.push_back(&stage);
    most_of_any = std::max(most_of_any, std::min(choice.most[stage.stage.index()].b, num_micro_batches_));
  }
  for (std::size_t count = most_of_any; count > 0; --count) {
    if (const auto windows = latest_that_fit(choice, stages, count)) return with_more_a(choice, *windows);
  }
  Windows windows;
  std::vector<const StageOfRank*> some;
  for (const StageOfRank* stage : stages) {
    some.push_back(stage);
    if (auto fitting = latest_that_fit(choice, some, 1)) {
      windows = std::move(*fitting);
    } else {
      some.pop_back();
    }
  }
  return windows;
}

FreshStatisticsPlacer::Windows FreshStatisticsPlacer::with_more_a(const Choice& choice,
                                                                  const Windows& windows) const {
  for (std::size_t count = num_micro_batches_; count > 0; --count) {
    for (std::size_t earlier = 0; earlier < num_micro_batches_; ++earlier) {
      Windows more = windows;
      bool has_more = false;
      for (StageWindows& of : more) {
        const Window window =
            latest(*of.stage, std::min(count, choice.most[of.stage->stage.index()].a), earlier);
        if (window.count <= of.b.count) continue;
        has_more = true;
        of.a = window;
      }
      if (!has_more) return windows;
      if (fit(choice.rank, more, choice.parts).beyond == 0) return more;
    }
  }
  return windows;
}

/// Adds a micro-batch of each stage that no holder covers, though there is no room.
void FreshStatisticsPlacer::cover_all_stages(std::vector<Windows>& windows, const LayerParts& parts) const {
  for (std::size_t s = 0; s < step_.schedule().num_stages(); ++s) {
    const StageId stage = StageId::at(s);
    const auto is_of_stage = [stage](const StageWindows& of) { return of.stage->stage == stage; };
    if (std::ranges::any_of(windows,
                            [&](const auto& of_rank) { return std::ranges::any_of(of_rank, is_of_stage); }))
      continue;
    double least = std::numeric_limits<double>::infinity();
    std::size_t by = 0;
    std::optional<StageWindows> best;
    for (const Rank holder : step_.dataflow().holders(stage)) {
      const std::vector<StageOfRank>& held = ranks_[holder.index()].stages;
      const auto covered = std::ranges::find(held, stage, &StageOfRank::stage);
      if (covered == held.end()) continue;
      for (std::size_t first = covered->micro_batches.size(); first-- > 0;) {
        Windows tried = windows[holder.index()];
        tried.push_back({&*covered, {first, 1}, {first, 1}});
        const double beyond = fit(ranks_[holder.index()], tried, parts).beyond;
        if (beyond >= least) continue;
        least = beyond;
        by = holder.index();
        best = tried.back();
      }
    }
    if (best) windows[by].push_back(*best);
  }
}

FreshStatistics FreshStatisticsPlacer::place(const std::vector<MostCovered>& most,
                                             const LayerParts& parts) const {
  std::vector<Windows> windows;
  for (const RankGaps& rank : ranks_) windows.push_back(most_that_fit({rank, most, parts}));
  cover_all_stages(windows, parts);
  FreshStatistics statistics;
  for (const Refresh::Item& item : refresh_.items()) {
    statistics.is_dropped.push_back(is_curvature(item.work.action.type));
    statistics.steps.push_back(parts.step(part_of(item.work.action, parts)));
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (windows[rank].empty()) continue;
    for (const PlacedItem& placed : fit(ranks_[rank], windows[rank], parts).placed) {
      statistics.is_dropped[placed.item] = false;
      statistics.placed.push_back(placed);
    }
  }
  std::vector<std::uint32_t> new_index;
  std::uint32_t num_kept = 0;
  for (const bool is_dropped : statistics.is_dropped) new_index.push_back(is_dropped ? num_kept : num_kept++);
  for (PlacedItem& placed : statistics.placed) placed.item = new_index[placed.item];
  return statistics;
}

}  // namespace plenum::schedule
