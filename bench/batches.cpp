// Reads, masks and arranges steps of 256 sequences whose lengths are like Wikipedia's, by number of ranks.
//   build/bench/bench_batches
// Counters: tokens per second; tokens over rows (1 is no padding) and over the budget of all micro-batches
// that are not empty; the greatest load of a rank over the mean; masked tokens that memory is planned for;
// micro-batches per rank that are planned. Then: fills micro-batches with short sequences, by their number.
#include <benchmark/benchmark.h>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"

#include "tests/support/synthetic_sequences.h"
#include "tests/support/wikipedia_like_histogram.h"

namespace plenum::data {
namespace {

/// A million sequences of up to 512 tokens whose lengths are like Wikipedia's.
const test::SyntheticSequences& wikipedia_like() {
  static const test::SyntheticSequences sequences(test::wikipedia_like_histogram(512, 1'000'000), {}, 1);
  return sequences;
}

void make_steps(benchmark::State& state, Layout layout, OrderChoice order) {
  TrainingDataOptions options;
  options.layout = layout;
  options.order_choice = order;
  const describe::ModelConfig model = describe::preset("bert-base");
  const describe::Flops flops(describe::describe_bert(model));
  const auto num_ranks = static_cast<std::size_t>(state.range(0));
  const StepBatchSource source(wikipedia_like(), options, model, num_ranks, 1);
  double rows = 0;
  double tokens = 0;
  double filled = 0;
  double greatest_over_mean = 0;
  std::uint64_t step = 0;
  for (auto unused : state) {
    const std::vector<batch::StepBatch> ranks = source.make(step++);
    state.PauseTiming();
    tokens += static_cast<double>(ranks.front().global.tokens);
    double greatest = 0;
    for (const batch::StepBatch& batch : ranks) {
      batch::Work work;
      for (const batch::MicroBatch& micro_batch : batch.micro_batches) {
        work += micro_batch.work();
        rows += static_cast<double>(micro_batch.num_rows);
        if (micro_batch.num_rows > 0) filled += static_cast<double>(source.capacity().rows);
      }
      greatest = std::max(greatest, flops.forward(work));
    }
    greatest_over_mean += greatest * static_cast<double>(num_ranks) / flops.forward(ranks.front().global);
    state.ResumeTiming();
  }
  state.counters["tokens/s"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
  state.counters["tokens/rows"] = tokens / rows;
  state.counters["tokens/budget"] = tokens / filled;
  state.counters["load"] = greatest_over_mean / static_cast<double>(step);
  state.counters["masked"] = static_cast<double>(source.capacity().labels[0]);
  state.counters["planned"] = static_cast<double>(source.micro_batches_per_rank());
}
BENCHMARK_CAPTURE(make_steps, padded, Layout::Padded, OrderChoice::Sequences)->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(make_steps, packed, Layout::Packed, OrderChoice::Packs)->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(make_steps, unpadded, Layout::Unpadded, OrderChoice::Sequences)->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(make_steps, unpadded_packs, Layout::Unpadded, OrderChoice::Packs)->Arg(1)->Arg(4);

/// Many short sequences, as in evaluation: masked tokens are scarce, not rows. The time must grow no faster
/// than n log n. The last sequence masks fewer tokens, so that no micro-batch is ever quite full.
void fill_with_short_sequences(benchmark::State& state) {
  const auto num_short = static_cast<std::size_t>(state.range(0));
  std::vector<BatchSequence> sequences(num_short,
                                       {.id = 0, .length = 10, .labels = {masked_count(10, 0.15)}});
  sequences.push_back({.id = 0, .length = 3, .labels = {masked_count(3, 0.15)}});
  const std::vector<BatchItem> items = cut_items({}, sequences, Layout::Unpadded, 512);
  const batch::Capacity capacity{.rows = 4096, .sequences = 4096, .labels = {693}, .max_length = 512};
  for (auto unused : state) benchmark::DoNotOptimize(fill_micro_batches(items, capacity));
}
BENCHMARK(fill_with_short_sequences)->Arg(100'000)->Arg(200'000)->Arg(400'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plenum::data

BENCHMARK_MAIN();
