#include "plenum/packing/repacking.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "plenum/packing/branch_and_bound.h"
#include "plenum/packing/column_generation.h"
#include "plenum/packing/fullest_fit.h"
#include "plenum/packing/price_nodes.h"
#include "plenum/packing/rounding.h"
#include "plenum/packing/streaming.h"

namespace plenum::packing {

namespace {

/// The fewest packs that an attempt takes out, and how often that is doubled from one attempt to the next
/// before it begins anew.
constexpr std::uint64_t kFewestPacks = 4;
constexpr std::uint64_t kNumSizes = 6;
/// Below this a waste is taken for rounding.
constexpr double kWaste = 1e-9;
/// One in so many attempts may scatter waste, to get out of a dead end.
constexpr std::uint64_t kSeldom = 32;
constexpr std::uint64_t kNumSeeds = std::uint64_t{1} << 32;
/// Up to this many packs, an attempt may search for one less, as far as these nodes go.
constexpr std::uint64_t kFewPacksToRepack = 32;
constexpr std::int64_t kMaxNodes = 40;
constexpr double kThresholds[] = {0.6, 0.8, 0.5, 0.99};

void take_one(std::map<std::vector<std::int32_t>, std::uint64_t>& packs,
              const std::vector<std::int32_t>& lengths) {
  const auto found = packs.find(lengths);
  if (--found->second == 0) packs.erase(found);
}

}  // namespace

Repacking::Repacking(const PackingProblem& problem, const PackingPlan& plan, std::vector<double> duals)
    : problem_(problem), duals_(std::move(duals)), num_packs_(plan.num_packs()) {
  for (const PackPattern& pattern : plan.patterns) packs_[pattern.lengths] += pattern.count;
}

void Repacking::run(std::uint64_t enough_packs, std::int64_t num_attempts, const Deadline& deadline) {
  for (std::int64_t i = 0; i < num_attempts && num_packs_ > enough_packs && !deadline.passed(); ++i)
    attempt(deadline);
}

PackingPlan Repacking::plan() const {
  PackingPlan plan{.capacity = problem_.capacity, .depth = problem_.depth, .patterns = {}};
  for (auto pack = packs_.rbegin(); pack != packs_.rend(); ++pack)
    plan.patterns.push_back({pack->first, pack->second});
  return plan;
}

std::uint64_t Repacking::draw(std::uint64_t bound) {
  return base::to_range(random_(attempt_, draw_++), bound);
}

double Repacking::waste(const std::vector<std::int32_t>& lengths) const {
  double waste = 1;
  for (const std::int32_t length : lengths) waste -= duals_[static_cast<std::size_t>(length)];
  return waste;
}

double Repacking::concentration(const Packs& packs) const {
  double sum = 0;
  for (const auto& [lengths, count] : packs)
    sum += static_cast<double>(count) * waste(lengths) * waste(lengths);
  return sum;
}

/// Most of the packs that waste most, up to half of `number`, and others by chance, without regard to how
/// many there are of their kind.
Repacking::Packs Repacking::choose(std::uint64_t number) {
  std::vector<std::pair<double, Packs::const_iterator>> wasteful;
  std::vector<Packs::const_iterator> all;
  for (auto pack = packs_.cbegin(); pack != packs_.cend(); ++pack) {
    all.push_back(pack);
    const double wasted = waste(pack->first);
    if (wasted > kWaste) wasteful.emplace_back(wasted, pack);
  }
  std::stable_sort(wasteful.begin(), wasteful.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Packs chosen;
  std::uint64_t num_chosen = 0;
  for (const auto& [wasted, pack] : wasteful) {
    for (std::uint64_t i = 0; i < pack->second && 2 * num_chosen < number; ++i) {
      if (draw(4) == 0) continue;
      ++chosen[pack->first];
      ++num_chosen;
    }
    if (2 * num_chosen >= number) break;
  }
  for (std::uint64_t tries = 0; tries < 2 * number && num_chosen < number; ++tries) {
    const auto pack = all[draw(all.size())];
    std::uint64_t& taken = chosen[pack->first];
    if (taken == pack->second) continue;
    ++taken;
    ++num_chosen;
  }
  return chosen;
}

/// By chance one of the ways to pack. Some fail in one place, some in another; none is best everywhere.
PackingPlan Repacking::pack_anew(const PackingProblem& part, std::uint64_t num_packs,
                                 const Deadline& deadline) {
  const std::uint64_t way = draw(5);
  if (way <= 1) {
    std::vector<std::int32_t> lengths = lengths_that_occur(part.histogram);
    std::reverse(lengths.begin(), lengths.end());
    for (std::size_t i = lengths.size(); way == 1 && i > 1; --i) std::swap(lengths[i - 1], lengths[draw(i)]);
    PackingPlan plan{.capacity = part.capacity, .depth = part.depth, .patterns = {}};
    append_fullest_fit(part.histogram.counts, lengths, plan);
    return plan;
  }
  if (way == 2) return pack_streaming(part, {.seed = draw(kNumSeeds)});
  if (way == 3 && num_packs <= kFewPacksToRepack) {
    const DualWeights weights = feasible_weights(part, weights_of_duals(duals_, part.capacity));
    return search_plan(part, num_packs - 1, weights, kMaxNodes, deadline).plan.value_or(PackingPlan{});
  }
  const double threshold = kThresholds[draw(std::size(kThresholds))];
  Relaxation relaxation = relax(part, {}, {.choice = PatternChoice::Possible}, deadline);
  return round_relaxation(part, std::move(relaxation), {.threshold = threshold}, deadline);
}

void Repacking::attempt(const Deadline& deadline) {
  ++attempt_;
  draw_ = 0;
  const Packs old = choose(kFewestPacks << (attempt_ % kNumSizes));
  PackingProblem part{.histogram = {std::vector<std::uint64_t>(problem_.histogram.counts.size())},
                      .capacity = problem_.capacity,
                      .depth = problem_.depth};
  std::uint64_t num_old = 0;
  for (const auto& [lengths, count] : old) {
    num_old += count;
    for (const std::int32_t length : lengths)
      part.histogram.counts[static_cast<std::size_t>(length)] += count;
  }
  if (num_old < 2) return;
  const PackingPlan found = pack_anew(part, num_old, deadline);
  const std::uint64_t num_found = found.num_packs();
  if (num_found == 0 || num_found > num_old) return;  // a search may find nothing
  Packs fresh;
  for (const PackPattern& pattern : found.patterns) fresh[pattern.lengths] += pattern.count;
  // Waste that is gathered in few packs empties one of them in the end.
  if (num_found == num_old && draw(kSeldom) > 0 && concentration(fresh) < concentration(old)) return;
  for (const auto& [lengths, count] : old) {
    for (std::uint64_t i = 0; i < count; ++i) take_one(packs_, lengths);
  }
  for (const auto& [lengths, count] : fresh) packs_[lengths] += count;
  num_packs_ -= num_old - num_found;
}

}  // namespace plenum::packing
