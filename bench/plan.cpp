// The planner: bounds of strategies, and the simulation of one.
//   build/bench/bench_plan
// items_per_second: plans for each core.
#include <benchmark/benchmark.h>

#include "plenum/plan/candidate_bounds.h"
#include "plenum/plan/search.h"

#include "tests/plan/made_up_run.h"

namespace plenum::plan {
namespace {

struct Subject {
  Subject() {
    cluster.num_nodes = 512;
    cluster.devices_per_node = 8;
    cluster.device.launch_seconds = 4e-6;
    request.model =
        describe::describe_bert({.width = 1024, .num_layers = 24, .num_heads = 16, .mlp_width = 4096});
    request.num_ranks = 4096;
    candidates = enumerate(request, {}, sampler, cluster);
  }

  test::MadeUpSteps sampler{{.items = 8192, .max_length = 512}};
  Cluster cluster = test::MadeUp(1).cluster(tensor::Device::Cuda);
  StrategyRequest request;
  std::vector<Candidate> candidates;
};

/// The closed forms of time and memory, with the terms that strategies have in common at hand.
void measure_bounds(benchmark::State& state) {
  const Subject subject;
  CandidateBounds bounds(subject.request, subject.sampler, subject.cluster, 1, 2);
  std::vector<CandidateBounds::Terms> terms;
  std::vector<BoundedStrategy> strategies;
  for (const Candidate& candidate : subject.candidates) {
    terms.push_back(bounds.terms(candidate));
    strategies.push_back(bounded(candidate, 4));
  }
  for (auto _ : state) {
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      benchmark::DoNotOptimize(
          least_step_seconds(strategies[i], *terms[i].work, *terms[i].parameters, subject.cluster));
      benchmark::DoNotOptimize(least_peak_bytes(strategies[i], *terms[i].memory));
    }
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(strategies));
}

/// With what they have in common made anew.
void measure_bounds_from_scratch(benchmark::State& state) {
  const Subject subject;
  for (auto _ : state) {
    CandidateBounds bounds(subject.request, subject.sampler, subject.cluster, 1, 2);
    for (const Candidate& candidate : subject.candidates) {
      benchmark::DoNotOptimize(bounds.least_seconds(candidate));
      benchmark::DoNotOptimize(bounds.least_bytes(candidate));
    }
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(subject.candidates));
}

/// Schedule, memory and simulation of one strategy after another.
void measure_simulation(benchmark::State& state) {
  const Subject subject;
  std::size_t next = 0;
  for (auto _ : state) {
    const Candidate& candidate = subject.candidates[next];
    next = (next + 97) % subject.candidates.size();
    benchmark::DoNotOptimize(
        plan_of(candidate, subject.request, subject.sampler, subject.cluster, {.num_steps = 1}));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(measure_bounds)->Name("Bounds/4096")->Unit(benchmark::kMillisecond);
BENCHMARK(measure_bounds_from_scratch)->Name("BoundsFromScratch/4096")->Unit(benchmark::kMillisecond);
BENCHMARK(measure_simulation)->Name("Simulation/4096")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plenum::plan

BENCHMARK_MAIN();
