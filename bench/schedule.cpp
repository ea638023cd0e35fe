// Generators and simulate, over square sizes (as many ranks as micro-batches).
//   build/bench/bench_schedule --benchmark_filter='Simulate/1f1b/.*' --benchmark_repetitions=5
// items_per_second: actions generated or replayed. simulate replays two cycles, both are counted.
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "plenum/schedule/generator.h"
#include "plenum/schedule/simulate.h"

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
  const std::size_t depth = generator.is_pipeline ? size : 1;
  return generator.generate({.depth = depth,
                             .num_micro_batches = size,
                             .num_replicas = generator.name == "data-parallel" ? size : 1,
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

void measure_simulate(benchmark::State& state, const Generator& generator, std::size_t size) {
  const Schedule schedule = generate_square(generator, size);
  const PlainCosts costs;
  for (auto _ : state) benchmark::DoNotOptimize(simulate(schedule, costs).step_seconds);
  count_actions(state, 2 * schedule.num_actions());
}

void register_all() {
  for (const Generator& generator : all_generators()) {
    for (const std::size_t size : {64, 256, 1024}) {
      const auto add = [&](const char* what, auto measure) {
        benchmark::RegisterBenchmark(
            fmt::format("{}/{}/{}x{}", what, generator.name, size, size).c_str(),
            [&generator, size, measure](benchmark::State& state) { measure(state, generator, size); })
            ->Unit(benchmark::kMillisecond);
      };
      add("Generate", measure_generate);
      add("Simulate", measure_simulate);
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
