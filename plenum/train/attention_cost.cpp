#include "plenum/train/attention_cost.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/base/thread_pool.h"
#include "plenum/batch/work.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/kernels/attention.h"
#include "plenum/kernels/gemm_rate.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/stream.h"

namespace plenum::train {
namespace {

using tensor::DType;

constexpr double kPassesOfTraining = 3;  // a forward, and a backward of twice as many operations

/// Attention of one layer over T tokens in sequences of one length, on one thread.
class AttentionProbe {
 public:
  AttentionProbe(const describe::ModelConfig& model, std::int64_t num_rows, std::int64_t max_length)
      : T_(num_rows),
        H_(model.num_heads),
        K_(model.head_width()),
        qkv_(layout_.add("probe", DType::Float32, {T_, 3, H_, K_})),
        dqkv_(layout_.add("probe", DType::Float32, {T_, 3, H_, K_})),
        context_(layout_.add("probe", DType::Float32, {T_, H_, K_})),
        dcontext_(layout_.add("probe", DType::Float32, {T_, H_, K_})),
        lse_(layout_.add("probe", DType::Float32, {H_, T_})),
        scratch_(layout_.add("probe", DType::Byte, {scratch_bytes(max_length)})),
        arena_(layout_),
        stream_(pool_, arena_.view(scratch_).span<std::byte>()) {
    fill(arena_.view(qkv_).span<float>(), 1);
    fill(arena_.view(dcontext_).span<float>(), 2);
  }

  /// The fastest of a few times.
  double seconds(std::int64_t length) {
    constexpr int kTimes = 2;
    std::vector<std::int32_t> starts;
    std::vector<std::int32_t> lengths;
    for (std::int64_t start = 0; start < T_; start += length) {
      starts.push_back(static_cast<std::int32_t>(start));
      lengths.push_back(static_cast<std::int32_t>(std::min(length, T_ - start)));
    }
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimes; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      run({starts, lengths, T_});
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      fastest = std::min(fastest, taken.count());
    }
    return fastest;
  }

 private:
  std::int64_t scratch_bytes(std::int64_t max_length) const {
    constexpr std::int64_t kAlignment = 64;
    const kernels::AttentionSize size{
        .rows = max_length, .max_length = max_length, .heads = 1, .head_width = K_};
    return static_cast<std::int64_t>(kernels::attention_scratch_bytes(tensor::Device::Cpu, size)) +
           kAlignment;
  }

  static void fill(std::span<float> values, std::uint64_t seed) {
    const base::RandomFunction random(seed, base::Purpose::SyntheticText);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(2 * base::to_unit_interval(random(i)) - 1);
  }

  void run(const batch::SequenceOffsets& sequences) const {
    kernels::attention_forward(stream_, {.qkv_T3HK = arena_.view(qkv_),
                                         .sequences = sequences,
                                         .samples = {},
                                         .dropout = {},
                                         .context_THK = arena_.view(context_),
                                         .lse_HT = arena_.view(lse_)});
    kernels::attention_backward(stream_, {.qkv_T3HK = arena_.view(qkv_),
                                          .context_THK = arena_.view(context_),
                                          .lse_HT = arena_.view(lse_),
                                          .dcontext_THK = arena_.view(dcontext_),
                                          .sequences = sequences,
                                          .samples = {},
                                          .dropout = {},
                                          .dqkv_T3HK = arena_.view(dqkv_)});
  }

  std::int64_t T_;
  std::int64_t H_;
  std::int64_t K_;
  tensor::MemoryLayout layout_;
  tensor::Block qkv_, dqkv_, context_, dcontext_, lse_, scratch_;
  tensor::Arena arena_;
  base::ThreadPool pool_{1};
  tensor::Stream stream_;
};

double flops_of_token(const describe::ModelConfig& model) {
  constexpr std::int64_t kMany = 1000;
  return describe::Flops(describe::describe_bert(model)).forward({.tokens = kMany}) / kMany;
}

double flops_of_pair(const describe::ModelConfig& model) {
  return describe::Flops(describe::describe_bert(model)).forward({.squared_lengths = 1});
}

}  // namespace

double SequenceCost::attention_cost(const describe::ModelConfig& model) const {
  return of_pair / of_token * flops_of_token(model) / flops_of_pair(model);
}

SequenceCost measure_sequence_cost(const describe::ModelConfig& model, std::int64_t max_length) {
  constexpr double kGemmSeconds = 0.05;
  constexpr std::int64_t kMostRows = 512;
  constexpr std::int64_t kShorter = 8;
  base::ThreadPool pool(1);
  const double rate = kernels::measure_gemm_rate(pool, kGemmSeconds).fastest;
  const std::int64_t long_length = std::min(max_length, kMostRows);
  const std::int64_t short_length = std::max<std::int64_t>(1, long_length / kShorter);
  AttentionProbe probe(model, long_length, long_length);
  const double in_long = probe.seconds(long_length);
  const double in_short = probe.seconds(short_length);
  // Both have as many tokens: what differs is the pairs.
  const auto tokens = static_cast<double>(long_length);
  const double long_pairs = tokens * tokens;
  const double short_pairs = tokens * static_cast<double>(short_length);
  const auto layers = static_cast<double>(model.num_layers);
  const double of_pair = std::max(0.0, in_long - in_short) / (long_pairs - short_pairs);
  const double beside_pairs = std::max(0.0, in_short - of_pair * short_pairs) / tokens;
  return {.of_token = kPassesOfTraining * flops_of_token(model) / rate + layers * beside_pairs,
          .of_pair = layers * of_pair};
}

double round_attention_cost(double measured) {
  constexpr double kMost = 64;
  return std::exp2(std::round(std::log2(std::clamp(measured, 1 / kMost, kMost))));
}

}  // namespace plenum::train
