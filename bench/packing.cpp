// Packers, virtual packs and BatchOrder on the two published histograms (Wikipedia 512, SQuAD 1.1 384).
//   build/bench/bench_packing --benchmark_filter='Pack/wikipedia.*'
// Counters: packs and efficiency of the plan, sequences per second of the lookups.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "plenum/data/batches/batch_order.h"
#include "plenum/data/batches/histogram_file.h"
#include "plenum/packing/lpfhp.h"
#include "plenum/packing/packers.h"
#include "plenum/packing/virtual_packs.h"

namespace plenum {
namespace {

packing::PackingProblem read_problem(const std::string& name, std::int64_t depth) {
  packing::PackingProblem problem;
  problem.histogram =
      data::read_histogram_file(std::string(PLENUM_SOURCE_DIR) + "/tests/golden/" + name + "_histogram.txt",
                                packing::HistogramText::Form::Histogram);
  problem.capacity = problem.histogram.longest();
  problem.depth = depth == 0 ? problem.capacity : depth;
  return problem;
}

void run_packer(benchmark::State& state, const packing::Packer& packer, const std::string& name,
                std::int64_t depth) {
  const packing::PackingProblem problem = read_problem(name, depth);
  packing::PackingResult result;
  for (auto _ : state) {
    result = packing::pack(problem, packer, {});
    // The packer's own time, without the check of its plan.
    state.SetIterationTime(result.seconds);
  }
  state.counters["packs"] = static_cast<double>(result.plan.num_packs());
  state.counters["gap"] = static_cast<double>(result.plan.num_packs() - result.bound.packs);
  state.counters["filled"] = packing::packing_efficiency(result.plan, problem.histogram.num_tokens());
}

void register_packers() {
  for (const std::string name : {"wikipedia_512", "squad_1_1_384"}) {
    for (const packing::Packer& packer : packing::all_packers()) {
      for (const std::int64_t depth : {2, 3, 4, 8, 0}) {
        if (packing::reason_against(read_problem(name, depth), packer)) continue;
        const std::string depth_name = depth == 0 ? "unlimited" : fmt::format("{}", depth);
        benchmark::RegisterBenchmark(
            fmt::format("Pack/{}/{}/depth:{}", name, packer.name, depth_name).c_str(),
            [&packer, name, depth](benchmark::State& state) { run_packer(state, packer, name, depth); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

void virtual_pack_lookup(benchmark::State& state) {
  const packing::PackingProblem problem = read_problem("wikipedia_512", 0);
  const packing::VirtualPacks packs(packing::pack_lpfhp(problem), problem.histogram, 1, 0);
  std::vector<std::uint64_t> ids;
  std::uint64_t pack_index = 0;
  std::int64_t num_sequences = 0;
  for (auto _ : state) {
    ids.clear();
    packs.append_pack(pack_index, ids);
    benchmark::DoNotOptimize(ids.data());
    num_sequences += static_cast<std::int64_t>(ids.size());
    // A large odd stride: neighbouring lookups share nothing.
    pack_index = (pack_index + 5'000'011) % packs.num_packs();
  }
  state.SetItemsProcessed(num_sequences);
}

void batch_order_lookup(benchmark::State& state, bool packed) {
  const packing::PackingProblem problem = read_problem("wikipedia_512", 0);
  const data::GlobalBatchSize size{data::GlobalBatchSize::Unit::Sequences, 4096};
  const data::BatchOrder order =
      packed ? data::BatchOrder(problem.histogram, packing::pack_lpfhp(problem), size, 1)
             : data::BatchOrder(problem.histogram, size, 1);
  const data::EpochOrder epoch = order.epoch(0);
  std::uint64_t step = 0;
  std::int64_t num_sequences = 0;
  for (auto _ : state) {
    const data::GlobalBatch batch = epoch.batch(step);
    benchmark::DoNotOptimize(batch.sequence_ids.data());
    num_sequences += static_cast<std::int64_t>(batch.sequence_ids.size());
    step = (step + 997) % order.steps_per_epoch();
  }
  state.SetItemsProcessed(num_sequences);
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::register_packers();
  benchmark::RegisterBenchmark("VirtualPacks/lookup", plenum::virtual_pack_lookup);
  benchmark::RegisterBenchmark("BatchOrder/sequences", plenum::batch_order_lookup, false);
  benchmark::RegisterBenchmark("BatchOrder/packs", plenum::batch_order_lookup, true);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
