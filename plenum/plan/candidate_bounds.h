#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "plenum/plan/bounds.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/step_sampler.h"
#include "plenum/plan/strategies.h"

namespace plenum::plan {

/// The strategy as its bound sees it, where so many replicas are looked at. Borrows the candidate.
BoundedStrategy bounded(const Candidate& candidate, std::size_t most_replicas);

/// Bounds of candidates, with what many have in common made once.
class CandidateBounds {
 public:
  /// Borrows all of them. Of each step so many replicas are looked at, as simulate_steps() does.
  CandidateBounds(const StrategyRequest& request, const StepSampler& sampler, const Cluster& cluster,
                  std::size_t num_steps, std::size_t most_replicas);

  /// What the closed forms of a candidate read.
  struct Terms {
    const WorkBound* work = nullptr;
    const ParameterBound* parameters = nullptr;
    const MemoryBound* memory = nullptr;
  };
  Terms terms(const Candidate& candidate);

  double least_seconds(const Candidate& candidate);
  /// Of the process that takes the most, with what lies outside the plan.
  double least_bytes(const Candidate& candidate);

 private:
  using CutKey = std::pair<std::size_t, batch::MicroBatchCut>;

  const describe::ModelDescription& slice(std::size_t slices);
  /// Of the replicas that are looked at.
  const std::vector<StepWork>& steps(const Strategy& strategy);

  const StrategyRequest& request_;
  const StepSampler& sampler_;
  const Cluster& cluster_;
  std::size_t num_steps_;
  std::size_t most_replicas_;
  std::map<std::size_t, describe::ModelDescription> slices_;
  std::map<CutKey, std::vector<StepWork>> steps_;
  std::map<std::tuple<std::size_t, CutKey, schedule::Recomputation>, WorkBound> work_;
  std::map<std::tuple<std::size_t, TiedGradient, BubbleFill>, ParameterBound> parameters_;
  std::map<std::tuple<std::size_t, CutKey, schedule::Recomputation, schedule::Sharding>, MemoryBound> memory_;
};

}  // namespace plenum::plan
