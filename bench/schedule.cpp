// Generators, check, simulate and fill, over square sizes (as many ranks as micro-batches).
//   build/bench/bench_schedule --benchmark_filter='Simulate/1f1b/.*' --benchmark_repetitions=5
// items_per_second: actions generated, checked, replayed, or in the filled cycle. simulate replays two
// cycles, both are counted. over_bound: the part by which filling exceeds the least steps from refresh to
// refresh.
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/profile_costs.h"
#include "plenum/schedule/simulate/simulate.h"

#include "tests/support/bert_layer_maps.h"

namespace plenum::schedule {
namespace {

/// A layer's forward takes 1, either half of its backward 1, a message 0.01 and as long on its way.
class PlainCosts final : public CostModel {
 public:
  double seconds(Rank, const Action& action) const override {
    const double layers = action.end_layer.value - action.first_layer.value;
    switch (action.type) {
      case ActionType::Backward:
        return 2 * layers;
      case ActionType::SendActivation:
      case ActionType::SendGradient:
        return 0.01;
      case ActionType::SquareGradient:
      case ActionType::Agree:
      case ActionType::Update:
        return 0;
      default:
        return layers;
    }
  }
  double latency_seconds(Rank, Rank) const override { return 0.01; }
};

Schedule generate_square(const Generator& generator, std::size_t size) {
  const std::size_t depth = generator.is_pipeline() ? size : 1;
  return generator.generate({.depth = depth,
                             .num_micro_batches = size,
                             .num_replicas = generator.mesh == schedule::Mesh::Replicas ? size : 1,
                             .stage_layers = {3}});
}

void count_actions(benchmark::State& state, std::size_t actions_per_iteration) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(actions_per_iteration));
  state.counters["actions"] = static_cast<double>(actions_per_iteration);
}

void measure_generate(benchmark::State& state, const Generator& generator, std::size_t size) {
  std::size_t num_actions = 0;
  for (auto _ : state) {
    const Schedule schedule = generate_square(generator, size);
    num_actions = schedule.num_actions();
  }
  count_actions(state, num_actions);
}

void measure_check(benchmark::State& state, const Generator& generator, std::size_t size) {
  const Schedule schedule = generate_square(generator, size);
  for (auto _ : state) {
    if (!check(schedule).violations.empty()) state.SkipWithError("the schedule is wrong");
  }
  count_actions(state, schedule.num_actions());
}

void measure_simulate(benchmark::State& state, const Generator& generator, std::size_t size) {
  const Schedule schedule = generate_square(generator, size);
  const PlainCosts costs;
  for (auto _ : state) benchmark::DoNotOptimize(simulate(schedule, costs).step_seconds);
  count_actions(state, 2 * schedule.num_actions());
}

/// With K-FAC: three layers of BERT-Base on a stage, P100, 32 sequences of 128 tokens.
void measure_fill(benchmark::State& state, const Generator& generator, std::size_t size) {
  const Schedule schedule = generate_square(generator, size);
  const ProfileCosts costs(schedule,
                           {.forward_seconds = 9.748e-3,
                            .backward_seconds = 16.45e-3,
                            .curvature_seconds = 25.547e-3,
                            .inversion_seconds = 71.667e-3,
                            .precondition_seconds = 6.805e-3},
                           {.maps = test::bert_layer_maps()});
  const KfacFiller filler(test::bert_layer_maps().size());
  FillResult result;
  for (auto _ : state) result = fill(schedule, filler, costs);
  count_actions(state, result.schedule.num_actions());
  state.counters["over_bound"] = result.refresh_steps / result.refresh_bound - 1;
}

template <typename Measure>
void add(const char* what, const Generator& generator, std::size_t size, Measure measure) {
  benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}x{}", what, generator.name, size, size).c_str(),
      [&generator, size, measure](benchmark::State& state) { measure(state, generator, size); })
      ->Unit(benchmark::kMillisecond);
}

void register_all() {
  for (const Generator& generator : all_generators()) {
    for (const std::size_t size : {64, 256, 1024}) {
      add("Generate", generator, size, measure_generate);
      add("Check", generator, size, measure_check);
      add("Simulate", generator, size, measure_simulate);
    }
    // The others leave no idle time.
    for (const std::size_t size : {4, 16}) {
      if (generator.is_pipeline()) add("Fill", generator, size, measure_fill);
    }
  }
}

}  // namespace
}  // namespace plenum::schedule

int main(int argc, char** argv) {
  plenum::schedule::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
