#include "plenum/plan/search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/plan/candidate_bounds.h"
#include "plenum/plan/planned_schedule.h"

namespace plenum::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

PlannedSchedule schedule_of(const Candidate& candidate, const StrategyRequest& request,
                            const StepSampler& sampler, const StepWork& step, const Cluster& cluster,
                            std::size_t most_replicas) {
  return planned_schedule(candidate.strategy, request.model, sampler.typical(), candidate.limits, step,
                          cluster, most_replicas);
}

MemorySetting memory_setting(const Candidate& candidate, const StrategyRequest& request,
                             const Cluster& cluster) {
  return {.capacity = candidate.limits.capacity,
          .num_threads = cluster.threads,
          .processes = processes_of(cluster, request.num_ranks),
          .evaluated = request.evaluated,
          .known_outside_bytes = static_cast<std::size_t>(cluster.overhead_bytes)};
}

/// With what micro-batches reach in the steps that are looked at.
StrategyMemory memory_of(const Candidate& candidate, const StrategyRequest& request,
                         const AbridgedSchedule& schedule, const std::vector<StepWork>& steps,
                         const Cluster& cluster) {
  MemorySetting setting = memory_setting(candidate, request, cluster);
  setting.largest = largest_step(steps, setting.capacity);
  return strategy_memory(candidate.strategy, request.model, schedule, setting);
}

/// A pipeline whose bubbles are filled takes no less than it does without: its actions keep their order, and
/// others come between them. That is simulated in a part of the time that filling takes. Of SOAP, whose
/// updates differ from those without it, nothing is said.
double least_filled_seconds(const Candidate& candidate, const StrategyRequest& request,
                            const StepSampler& sampler, const std::vector<StepWork>& steps,
                            const Cluster& cluster, std::size_t most_replicas) {
  const Strategy& strategy = candidate.strategy;
  const bool is_filled = strategy.depth > 1 && strategy.matrices.fill != BubbleFill::Off &&
                         strategy.matrices.kind == schedule::Preconditioner::Kfac;
  if (!is_filled) return 0;
  const AbridgedSchedule plain = abridged_schedule(strategy, request.model, sampler.typical(),
                                                   candidate.limits.micro_batches_per_replica,
                                                   num_written_replicas(strategy, most_replicas));
  return simulate_steps(strategy, request.model, plain, steps, cluster).seconds;
}

struct Bounded {
  const Candidate* candidate = nullptr;
  double seconds = 0;
  double bytes = 0;
};

std::vector<Bounded> bounded_all(const std::vector<Candidate>& candidates, const StrategyRequest& request,
                                 const StepSampler& sampler, const Cluster& cluster,
                                 const SearchOptions& options) {
  CandidateBounds bounds(request, sampler, cluster, options.num_steps, options.most_replicas);
  std::vector<Bounded> all;
  for (const Candidate& candidate : candidates)
    all.push_back({&candidate, bounds.least_seconds(candidate), bounds.least_bytes(candidate)});
  return all;
}

/// Steps of strategies that have replicas and cut in common.
class SampledSteps {
 public:
  SampledSteps(const StrategyRequest& request, const StepSampler& sampler, std::size_t num_steps)
      : request_(request), sampler_(sampler), num_steps_(num_steps) {}

  const std::vector<StepWork>& of(const Strategy& strategy) {
    for (const Entry& entry : recent_) {
      if (entry.replicas == strategy.replicas && entry.cut == strategy.micro_batches) return entry.steps;
    }
    constexpr std::size_t kMost = 8;
    if (recent_.size() == kMost) recent_.erase(recent_.begin());
    recent_.push_back({strategy.replicas, strategy.micro_batches,
                       busiest_first(sampler_.sample(strategy.replicas, strategy.micro_batches, num_steps_),
                                     strategy.replicas, request_.model)});
    return recent_.back().steps;
  }

 private:
  struct Entry {
    std::size_t replicas = 0;
    batch::MicroBatchCut cut;
    std::vector<StepWork> steps;
  };
  const StrategyRequest& request_;
  const StepSampler& sampler_;
  std::size_t num_steps_;
  std::vector<Entry> recent_;
};

/// Plans in order of step time, those that nothing before them is smaller than.
std::vector<std::size_t> frontier_of(const std::vector<Plan>& ranked) {
  std::vector<std::size_t> frontier;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (frontier.empty() || ranked[i].memory.peak_bytes() < ranked[frontier.back()].memory.peak_bytes())
      frontier.push_back(i);
  }
  return frontier;
}

/// Of the strategies that fit nowhere: what is said to the user.
class Obstacle {
 public:
  Obstacle(const StrategyRequest& request, std::string model_name, const StepSampler& sampler,
           const Cluster& cluster, const SearchOptions& options)
      : request_(request),
        model_name_(std::move(model_name)),
        sampler_(sampler),
        cluster_(cluster),
        options_(options) {}

  std::string text(std::vector<Bounded> by_bytes, double limit) const {
    std::ranges::stable_sort(by_bytes, {}, &Bounded::bytes);
    const auto least = [&](auto allowed) { return smallest(by_bytes, allowed); };
    const Needed plain = least([](const Strategy& strategy) {
      return strategy.recomputation == schedule::Recomputation::None &&
             strategy.sharding == schedule::Sharding::None;
    });
    const Needed any = least([](const Strategy&) { return true; });
    std::string reason = fmt::format(
        "no layout of {} over {} fits {} {}", model_name_,
        request_.num_ranks == 1 ? "1 rank" : fmt::format("{} ranks", request_.num_ranks),
        base::format_bytes(static_cast<std::uint64_t>(limit)),
        processes_of(cluster_, request_.num_ranks) == Processes::One ? "in one process" : "per rank");
    if (plain.candidate != nullptr) reason += "; " + needs(plain);
    if (any.candidate != nullptr && any.candidate != plain.candidate) reason += "; the least: " + needs(any);
    return reason + advice(any, limit);
  }

 private:
  struct Needed {
    const Candidate* candidate = nullptr;
    double bytes = kNever;
  };

  double bytes_of(const Candidate& candidate) const {
    const Strategy& strategy = candidate.strategy;
    const std::vector<StepWork> steps = sampler_.sample(strategy.replicas, strategy.micro_batches, 1);
    constexpr std::size_t kReplicas = 2;
    const PlannedSchedule schedule =
        schedule_of(candidate, request_, sampler_, steps.front(), cluster_, kReplicas);
    return static_cast<double>(strategy_memory(strategy, request_.model, schedule.steps,
                                               memory_setting(candidate, request_, cluster_))
                                   .peak_bytes());
  }

  /// By every byte, of those whose bounds leave a chance.
  template <typename Allowed>
  Needed smallest(const std::vector<Bounded>& by_bytes, Allowed allowed) const {
    Needed best;
    std::size_t num_looked_at = 0;
    constexpr std::size_t kMost = 50;
    for (const Bounded& bounded : by_bytes) {
      if (bounded.bytes >= best.bytes || num_looked_at == kMost) break;
      if (!allowed(bounded.candidate->strategy)) continue;
      ++num_looked_at;
      const double bytes = bytes_of(*bounded.candidate);
      if (bytes < best.bytes) best = {bounded.candidate, bytes};
    }
    return best;
  }

  static std::string needs(const Needed& needed) {
    return fmt::format("{} needs {}", strategy_text(needed.candidate->strategy),
                       base::format_bytes(static_cast<std::uint64_t>(needed.bytes)));
  }

  /// The largest budget of tokens that the smallest strategy fits with, below the grid's.
  std::string advice(const Needed& any, double limit) const {
    if (any.candidate == nullptr || any.candidate->strategy.depth > 1) return "; take more ranks";
    Candidate candidate = *any.candidate;
    const auto fits = [&](std::int64_t tokens) {
      candidate.strategy.micro_batches = {.tokens = tokens};
      try {
        candidate.limits = sampler_.limits(candidate.strategy.replicas, candidate.strategy.micro_batches);
      } catch (const base::UserError&) {
        return false;
      }
      return bytes_of(candidate) <= limit;
    };
    std::int64_t most = any.candidate->limits.capacity.max_length;
    if (!fits(most)) return "; take more ranks, or a smaller model";
    for (std::int64_t too_many = any.candidate->limits.capacity.rows; most + 1 < too_many;) {
      const std::int64_t middle = std::midpoint(most, too_many);
      (fits(middle) ? most : too_many) = middle;
    }
    return fmt::format("; --micro-batch-tokens {} would fit", most);
  }

  const StrategyRequest& request_;
  std::string model_name_;
  const StepSampler& sampler_;
  const Cluster& cluster_;
  const SearchOptions& options_;
};

}  // namespace

double memory_of_process(const Cluster& cluster, std::size_t num_ranks) {
  if (cluster.memory_bytes <= 0) return kNever;
  const bool is_shared =
      cluster.kind == tensor::Device::Cpu && processes_of(cluster, num_ranks) == Processes::EachRank;
  const std::size_t sharing = is_shared ? std::min(num_ranks, cluster.devices_per_node) : std::size_t{1};
  return cluster.memory_bytes / static_cast<double>(sharing);
}

Plan plan_of(const Candidate& candidate, const StrategyRequest& request, const StepSampler& sampler,
             const Cluster& cluster, const SearchOptions& options) {
  SampledSteps sampled(request, sampler, options.num_steps);
  const std::vector<StepWork>& steps = sampled.of(candidate.strategy);
  const PlannedSchedule schedule =
      schedule_of(candidate, request, sampler, steps.front(), cluster, options.most_replicas);
  return {.candidate = candidate,
          .step = simulate_steps(candidate.strategy, request.model, schedule.steps, steps, cluster),
          .memory = memory_of(candidate, request, schedule.steps, steps, cluster),
          .refresh_steps = schedule.refresh_steps,
          .fills_bubbles = schedule.fills_bubbles};
}

std::optional<MatrixOverhead> matrix_overhead(const Plan& plan, const StrategyRequest& request,
                                              const StepSampler& sampler, const Cluster& cluster,
                                              const SearchOptions& options) {
  if (request.matrices.kind == schedule::Preconditioner::None) return std::nullopt;
  StrategyRequest without = request;
  without.matrices = {};
  Candidate candidate = plan.candidate;
  candidate.strategy.matrices = {};
  const Plan other = plan_of(candidate, without, sampler, cluster, options);
  return MatrixOverhead{.seconds = plan.step.seconds - other.step.seconds,
                        .bytes = static_cast<double>(plan.memory.peak_bytes()) -
                                 static_cast<double>(other.memory.peak_bytes())};
}

SearchResult search(const StrategyRequest& request, const std::string& model_name, const StepSampler& sampler,
                    const Cluster& cluster, const SearchOptions& options) {
  SearchResult result;
  result.memory_limit_bytes =
      options.memory_limit_bytes.value_or(memory_of_process(cluster, request.num_ranks));
  const std::vector<Candidate> candidates = enumerate(request, options.grid, sampler, cluster);
  result.num_candidates = candidates.size();
  base::require(
      !candidates.empty(),
      "no layout over {} ranks goes with {}: layers, heads and sequences of a step do not divide so",
      request.num_ranks, model_name);

  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Bounded> all = bounded_all(candidates, request, sampler, cluster, options);
  result.bound_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<Bounded> open;
  std::ranges::copy_if(all, std::back_inserter(open),
                       [&](const Bounded& bound) { return bound.bytes <= result.memory_limit_bytes; });
  result.num_too_large = all.size() - open.size();
  std::ranges::stable_sort(open, {}, &Bounded::seconds);

  SampledSteps steps(request, sampler, options.num_steps);
  std::vector<double> best;  // the best times so far, ascending
  for (const Bounded& bound : open) {
    if (best.size() >= options.num_best && bound.seconds > best.back()) break;
    if (result.num_simulated == options.most_simulated) {
      result.is_cut_off = true;
      break;
    }
    const Candidate& candidate = *bound.candidate;
    const std::vector<StepWork>& works = steps.of(candidate.strategy);
    if (best.size() >= options.num_best && least_filled_seconds(candidate, request, sampler, works, cluster,
                                                                options.most_replicas) > best.back())
      continue;
    const PlannedSchedule schedule =
        schedule_of(candidate, request, sampler, works.front(), cluster, options.most_replicas);
    StrategyMemory memory = memory_of(candidate, request, schedule.steps, works, cluster);
    if (static_cast<double>(memory.peak_bytes()) > result.memory_limit_bytes) {
      ++result.num_too_large;
      continue;
    }
    ++result.num_simulated;
    result.ranked.push_back(
        {.candidate = candidate,
         .least_seconds = bound.seconds,
         .step = simulate_steps(candidate.strategy, request.model, schedule.steps, works, cluster),
         .memory = std::move(memory),
         .refresh_steps = schedule.refresh_steps,
         .fills_bubbles = schedule.fills_bubbles});
    best.insert(std::ranges::upper_bound(best, result.ranked.back().step.seconds),
                result.ranked.back().step.seconds);
    if (best.size() > options.num_best) best.pop_back();
  }
  std::ranges::stable_sort(result.ranked, {}, [](const Plan& plan) { return plan.step.seconds; });
  result.frontier = frontier_of(result.ranked);
  if (result.ranked.empty())
    result.reason =
        Obstacle(request, model_name, sampler, cluster, options).text(all, result.memory_limit_bytes);
  return result;
}

}  // namespace plenum::plan
