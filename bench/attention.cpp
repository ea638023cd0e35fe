// Variable-length attention: useful FLOP/s (4 l^2 K forward, 10 l^2 K backward, per head), beside the rate of
// one large product on the same thread.
//   build/bench/bench_attention --benchmark_filter='Forward/512.*' --benchmark_repetitions=5
// Lengths are quantiles of the Wikipedia histogram. As many sequences as fill 2048 rows, 12 heads of
// width 64.
#include "plenum/kernels/attention.h"

#include <vector>

#include <benchmark/benchmark.h>

#include "plenum/base/philox.h"
#include "plenum/base/thread_pool.h"
#include "plenum/kernels/dropout.h"
#include "plenum/kernels/linear.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/stream.h"

namespace plenum {
namespace {

constexpr std::int64_t kHeads = 12;
constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kRows = 2048;

// The tensors of one micro-batch of sequences of one length, on one thread.
class AttentionBench {
 public:
  AttentionBench(std::int64_t length, double dropout_rate)
      : length_(length),
        num_rows_(kRows / length * length),
        qkv_(layout_.add("qkv", tensor::DType::Float32, {num_rows_, 3, kHeads, kWidth})),
        dqkv_(layout_.add("dqkv", tensor::DType::Float32, {num_rows_, 3, kHeads, kWidth})),
        context_(layout_.add("context", tensor::DType::Float32, {num_rows_, kHeads, kWidth})),
        dcontext_(layout_.add("dcontext", tensor::DType::Float32, {num_rows_, kHeads, kWidth})),
        lse_(layout_.add("lse", tensor::DType::Float32, {kHeads, num_rows_})),
        scratch_(layout_.add("scratch", tensor::DType::Byte,
                             {static_cast<std::int64_t>(kernels::attention_scratch_bytes(
                                  tensor::Device::Cpu,
                                  {.rows = length, .max_length = length, .heads = 1, .head_width = kWidth})) +
                              64})),
        arena_(layout_),
        stream_(pool_, arena_.view(scratch_).span<std::byte>()) {
    for (std::int64_t start = 0; start < num_rows_; start += length) {
      starts_.push_back(static_cast<std::int32_t>(start));
      lengths_.push_back(static_cast<std::int32_t>(length));
      samples_.push_back(start);
    }
    dropout_.threshold = kernels::dropout_threshold(dropout_rate);
    dropout_.site = kernels::DropoutSite::AttentionWeights;
    fill(arena_.view(qkv_).span<float>(), 1);
    fill(arena_.view(dcontext_).span<float>(), 2);
  }

  void forward() const {
    kernels::attention_forward(stream_, {.qkv_T3HK = arena_.view(qkv_),
                                         .sequences = {starts_, lengths_, num_rows_},
                                         .samples = samples_,
                                         .dropout = dropout_,
                                         .context_THK = arena_.view(context_),
                                         .lse_HT = arena_.view(lse_)});
  }

  void backward() const {
    kernels::attention_backward(stream_, {.qkv_T3HK = arena_.view(qkv_),
                                          .context_THK = arena_.view(context_),
                                          .lse_HT = arena_.view(lse_),
                                          .dcontext_THK = arena_.view(dcontext_),
                                          .sequences = {starts_, lengths_, num_rows_},
                                          .samples = samples_,
                                          .dropout = dropout_,
                                          .dqkv_T3HK = arena_.view(dqkv_)});
  }

  // Of all sequences, for this many products of scores' size.
  double flops(double num_products) const {
    return num_products * 2 * static_cast<double>(num_rows_ * length_ * kHeads * kWidth);
  }

 private:
  static void fill(std::span<float> values, std::uint64_t seed) {
    const base::RandomFunction random(seed, base::Purpose::Initialisation);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(4 * base::to_unit_interval(random(i)) - 2);
    }
  }

  std::int64_t length_;
  std::int64_t num_rows_;
  tensor::MemoryLayout layout_;
  tensor::Block qkv_;
  tensor::Block dqkv_;
  tensor::Block context_;
  tensor::Block dcontext_;
  tensor::Block lse_;
  tensor::Block scratch_;
  tensor::Arena arena_;
  base::ThreadPool pool_{1};
  tensor::Stream stream_;
  std::vector<std::int32_t> starts_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> samples_;
  kernels::Dropout dropout_;
};

benchmark::Counter rate(double flops) {
  return {flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000};
}

void attention_forward(benchmark::State& state) {
  const AttentionBench bench(state.range(0), static_cast<double>(state.range(1)) / 100);
  for (auto _ : state) bench.forward();
  state.counters["FLOP/s"] = rate(bench.flops(2));
}

void attention_backward(benchmark::State& state) {
  const AttentionBench bench(state.range(0), static_cast<double>(state.range(1)) / 100);
  bench.forward();
  for (auto _ : state) bench.backward();
  state.counters["FLOP/s"] = rate(bench.flops(5));
}

// The rate that attention is compared with: the product of a hidden layer of BERT-base.
void product(benchmark::State& state) {
  constexpr std::int64_t kIn = 768;
  constexpr std::int64_t kOut = 3072;
  tensor::MemoryLayout layout;
  const tensor::Block x = layout.add("x", tensor::DType::Float32, {kRows, kIn});
  const tensor::Block w = layout.add("w", tensor::DType::Float32, {kOut, kIn});
  const tensor::Block y = layout.add("y", tensor::DType::Float32, {kRows, kOut});
  const tensor::Block scratch =
      layout.add("scratch", tensor::DType::Byte,
                 {static_cast<std::int64_t>(kernels::linear_scratch_bytes(tensor::Device::Cpu)) + 64});
  const tensor::Arena arena(layout);
  base::ThreadPool pool(1);
  const tensor::Stream stream(pool, arena.view(scratch).span<std::byte>());
  for (auto _ : state) {
    kernels::linear_forward(stream,
                            {.x_TD = arena.view(x), .w_ED = arena.view(w), .b_E = {}, .y_TE = arena.view(y)});
  }
  state.counters["FLOP/s"] = rate(2.0 * kRows * kIn * kOut);
}

BENCHMARK(product)->Name("Product/2048x768x3072")->Unit(benchmark::kMillisecond);
BENCHMARK(attention_forward)
    ->Name("Forward")
    ->ArgsProduct({{36, 84, 204, 484, 512}, {0, 10}})
    ->ArgNames({"", "dropout%"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(attention_backward)
    ->Name("Backward")
    ->ArgsProduct({{36, 84, 204, 484, 512}, {0, 10}})
    ->ArgNames({"", "dropout%"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace plenum

BENCHMARK_MAIN();
