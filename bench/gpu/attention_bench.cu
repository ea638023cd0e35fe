// Checks the attention kernels for Hopper against sums in double precision, then times them on the lengths of
// a histogram (line i: how many sequences have length i + 1).
//
//     attention_bench [HISTOGRAM [LENGTHS_OUT]]

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "plenum/kernels/cuda/attention/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention/attention_scratch.h"
#include "plenum/kernels/cuda/attention/attention_sm90.h"

namespace {

using namespace plenum::kernels::cuda;

constexpr int kWidth = 64;

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    require(cudaMalloc(&data_, std::max<std::size_t>(size, 1) * sizeof(T)), "allocation");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    require(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copy");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  void poison() const { require(cudaMemset(data_, 0xFF, size_ * sizeof(T)), "poison"); }
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    require(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

using Bf16s = std::vector<__nv_bfloat16>;

Bf16s random_values(std::size_t size, unsigned seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  Bf16s values(size);
  constexpr std::size_t kPeriod = 1048573;  // a prime: no two rows get the same values
  for (std::size_t i = 0; i < std::min(size, kPeriod); ++i) values[i] = __float2bfloat16(normal(generator));
  for (std::size_t i = kPeriod; i < size; ++i) values[i] = values[i - kPeriod];
  return values;
}

/// Sequences of a micro-batch; `gap` rows behind each.
struct Sequences {
  std::vector<std::int32_t> starts, lengths;
  std::int32_t num_rows = 0;

  Sequences(std::vector<std::int32_t> lengths_in, std::int32_t gap) : lengths(std::move(lengths_in)) {
    for (const std::int32_t length : lengths) {
      starts.push_back(num_rows);
      num_rows += length + gap;
    }
  }
};

/// A direction of attention, with its counter cleared before.
void start(cudaError_t (*launch)(const AttentionArguments&, cudaStream_t), const AttentionArguments& args,
           cudaStream_t stream) {
  require(cudaMemsetAsync(args.next_item, 0, sizeof *args.next_item, stream), "counter");
  require(launch(args, stream), "attention");
}

/// Inputs and outputs of both directions on the device.
struct Problem {
  Sequences sequences;
  int num_heads;
  Bf16s qkv_host, dcontext_host;
  DeviceArray<__nv_bfloat16> qkv, context, dcontext, dqkv;
  DeviceArray<float> lse;
  DeviceArray<AttentionTile> tiles;
  DeviceArray<AttentionGap> gaps;
  DeviceArray<std::int32_t> counts;
  DeviceArray<unsigned char> scratch;
  std::uint32_t dropout_threshold;  ///< of 256
  DeviceArray<std::int64_t> samples;
  DeviceArray<std::uint32_t> keep_by_query, keep_by_key;

  Problem(Sequences sequences_in, int num_heads_in, std::uint32_t threshold = 0)
      : Problem(std::move(sequences_in), num_heads_in, threshold,
                make_attention_tiles(sequences_in.starts, sequences_in.lengths, kAttentionTileRows),
                make_attention_gaps(sequences_in.starts, sequences_in.lengths, sequences_in.num_rows)) {}

  static int num_multiprocessors() {
    int count = 0;
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
    return count;
  }

  AttentionArguments arguments() const {
    return {.qkv_T3HK = qkv.data(),
            .context_THK = context.data(),
            .lse_HT = lse.data(),
            .dcontext_THK = dcontext.data(),
            .dqkv_T3HK = dqkv.data(),
            .tiles = tiles.data(),
            .num_tiles = counts.data(),
            .gaps = gaps.data(),
            .num_gaps = counts.data() + 1,
            .keep = keep(),
            .dropout_scale = dropout_scale(),
            .num_rows = sequences.num_rows,
            .num_heads = num_heads,
            .num_multiprocessors = num_multiprocessors(),
            .max_length = max_length(),
            .next_item = counts.data() + 2,
            .scratch = scratch.data()};
  }

  AttentionKeepBits keep() const {
    if (dropout_threshold == 0) return {};
    return {keep_by_query.data(), keep_by_key.data(), sequences.num_rows, num_column_blocks()};
  }
  float dropout_scale() const { return 256.0F / static_cast<float>(256 - dropout_threshold); }
  std::int32_t max_length() const {
    return *std::max_element(sequences.lengths.begin(), sequences.lengths.end());
  }
  std::int32_t num_column_blocks() const {
    return (max_length() + AttentionKeepBits::kBlockColumns - 1) / AttentionKeepBits::kBlockColumns;
  }

  void draw(bool by_query, bool by_key) const {
    draw_attention_keep_bits(nullptr, 132,
                             {.tiles = tiles.data(),
                              .num_tiles = counts.data(),
                              .tile_rows = kAttentionTileRows,
                              .samples_S = samples.data(),
                              .num_rows = sequences.num_rows,
                              .num_heads = num_heads,
                              .num_column_blocks = num_column_blocks(),
                              .threshold = dropout_threshold,
                              .layer_and_site = 5,
                              .key = {1, 2},
                              .by_query = by_query ? keep_by_query.data() : nullptr,
                              .by_key = by_key ? keep_by_key.data() : nullptr});
    require(cudaGetLastError(), "keep bits");
  }
  void forward() const { start(attention_forward_sm90, arguments(), nullptr); }
  void backward() const { start(attention_backward_sm90, arguments(), nullptr); }

 private:
  Problem(Sequences&& s, int heads, std::uint32_t threshold, const std::vector<AttentionTile>& tile_list,
          const std::vector<AttentionGap>& gap_list)
      : sequences(std::move(s)),
        num_heads(heads),
        qkv_host(random_values(size() * 3, 1, 1.5F)),
        dcontext_host(random_values(size(), 2, 1)),
        qkv(qkv_host),
        context(size()),
        dcontext(dcontext_host),
        dqkv(size() * 3),
        lse(static_cast<std::size_t>(sequences.num_rows) * heads),
        tiles(tile_list),
        gaps(gap_list),
        counts({static_cast<std::int32_t>(tile_list.size()), static_cast<std::int32_t>(gap_list.size()), 0}),
        scratch(attention_scratch_bytes_sm90(max_length())),
        dropout_threshold(threshold),
        samples(std::vector<std::int64_t>(sequences.lengths.begin(), sequences.lengths.end())),
        keep_by_query(num_keep_words()),
        keep_by_key(num_keep_words()) {
    scratch.poison();
    if (dropout_threshold == 0) return;
    draw(true, false);
    draw(false, true);
  }
  std::size_t num_keep_words() const {
    if (dropout_threshold == 0) return 0;
    return plenum::workspace::attention_keep_bytes(
               plenum::tensor::Device::Cuda,
               {.rows = sequences.num_rows, .max_length = max_length(), .heads = num_heads}) /
           sizeof(std::uint32_t);
  }
  std::size_t size() const { return static_cast<std::size_t>(sequences.num_rows) * num_heads * kWidth; }
};

/// Attention of one head of one sequence in double precision, with its gradients.
struct Reference {
  std::vector<double> context, lse, dq, dk, dv;

  /// keep_words: by query, on the host; empty: no dropout.
  Reference(const Problem& p, std::size_t sequence, int head, const std::vector<std::uint32_t>& keep_words) {
    const int n = p.sequences.lengths[sequence];
    const std::int64_t start = p.sequences.starts[sequence];
    const auto load = [&](const Bf16s& from, int parts, int part) {
      std::vector<double> values(static_cast<std::size_t>(n) * kWidth);
      for (int t = 0; t < n; ++t)
        for (int k = 0; k < kWidth; ++k)
          values[t * kWidth + k] = __bfloat162float(
              from[(((start + t) * parts + part) * p.num_heads + head) * static_cast<std::int64_t>(kWidth) +
                   k]);
      return values;
    };
    const auto q = load(p.qkv_host, 3, 0), k = load(p.qkv_host, 3, 1), v = load(p.qkv_host, 3, 2);
    const auto dout = load(p.dcontext_host, 1, 0);
    const double scale = 1 / std::sqrt(static_cast<double>(kWidth));
    const auto dot = [](const double* a, const double* b) {
      double sum = 0;
      for (int i = 0; i < kWidth; ++i) sum += a[i] * b[i];
      return sum;
    };
    const auto add = [](double* a, double factor, const double* b) {
      for (int i = 0; i < kWidth; ++i) a[i] += factor * b[i];
    };
    const auto factor = [&](int i, int j) -> double {
      if (keep_words.empty()) return 1;
      const int column = j % AttentionKeepBits::kBlockColumns;
      const std::uint32_t word =
          keep_words[p.keep().first_word(head, start + i) +
                     j / AttentionKeepBits::kBlockColumns * p.keep().block_stride() + column % 8 / 2];
      return word >> (column / 8 * 2 + column % 2) & 1 ? p.dropout_scale() : 0;
    };
    for (auto* out : {&context, &dq, &dk, &dv}) out->assign(q.size(), 0);
    lse.assign(n, 0);
    std::vector<double> weights(n), dweights(n);
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int j = 0; j < n; ++j) sum += weights[j] = std::exp(scale * dot(&q[i * kWidth], &k[j * kWidth]));
      lse[i] = std::log(sum);
      double delta = 0;
      for (int j = 0; j < n; ++j) {
        weights[j] /= sum;
        const double kept = weights[j] * factor(i, j);
        dweights[j] = factor(i, j) * dot(&dout[i * kWidth], &v[j * kWidth]);
        delta += weights[j] * dweights[j];
        add(&context[i * kWidth], kept, &v[j * kWidth]);
        add(&dv[j * kWidth], kept, &dout[i * kWidth]);
      }
      for (int j = 0; j < n; ++j) {
        const double ds = scale * weights[j] * (dweights[j] - delta);
        add(&dq[i * kWidth], ds, &k[j * kWidth]);
        add(&dk[j * kWidth], ds, &q[i * kWidth]);
      }
    }
  }
};

/// || out - reference || / || reference ||, gathered piece by piece.
struct RelativeError {
  double difference = 0, norm = 0;
  void add(double out, double reference) {
    difference += (out - reference) * (out - reference);
    norm += reference * reference;
  }
  double value() const { return std::sqrt(difference / norm); }
};

/// What the kernels give, and whether they give it twice.
struct Outcome {
  Bf16s context, dqkv;
  std::vector<float> lse;
  bool is_repeatable = false;

  explicit Outcome(const Problem& p) {
    run(p);
    context = p.context.to_host();
    dqkv = p.dqkv.to_host();
    lse = p.lse.to_host();
    run(p);
    is_repeatable = std::memcmp(context.data(), p.context.to_host().data(), context.size() * 2) == 0 &&
                    std::memcmp(dqkv.data(), p.dqkv.to_host().data(), dqkv.size() * 2) == 0;
  }

 private:
  static void run(const Problem& p) {
    p.context.poison();
    p.dqkv.poison();
    p.lse.poison();
    p.forward();
    p.backward();
    require(cudaDeviceSynchronize(), "kernels");
  }
};

/// Of every sequence and head.
std::vector<std::vector<Reference>> references_of(const Problem& p) {
  const std::size_t num_sequences = p.sequences.lengths.size();
  const std::vector<std::uint32_t> keep_words = p.keep_by_query.to_host();
  std::vector<std::vector<Reference>> references(num_sequences);
  std::vector<std::thread> threads;
  for (std::size_t s = 0; s < num_sequences; ++s)
    threads.emplace_back([&, s] {
      for (int h = 0; h < p.num_heads; ++h) references[s].emplace_back(p, s, h, keep_words);
    });
  for (auto& thread : threads) thread.join();
  return references;
}

struct Errors {
  RelativeError context, lse, dq, dk, dv;

  Errors(const Problem& p, const Outcome& outcome) {
    const std::vector<std::vector<Reference>> references = references_of(p);
    for (std::size_t s = 0; s < references.size(); ++s)
      for (int h = 0; h < p.num_heads; ++h)
        for (int t = 0; t < p.sequences.lengths[s]; ++t) add(p, outcome, references[s][h], s, h, t);
  }
  bool are_small() const {
    return std::ranges::all_of(std::array{context, lse, dq, dk, dv},
                               [](const RelativeError& error) { return error.value() < 1e-2; });
  }

 private:
  void add(const Problem& p, const Outcome& outcome, const Reference& reference, std::size_t s, int h,
           int t) {
    const std::int64_t row = p.sequences.starts[s] + t;
    lse.add(outcome.lse[static_cast<std::int64_t>(h) * p.sequences.num_rows + row], reference.lse[t]);
    for (int k = 0; k < kWidth; ++k) {
      const int at = t * kWidth + k;
      const auto gradient = [&](int part) {
        return __bfloat162float(outcome.dqkv[((row * 3 + part) * p.num_heads + h) * kWidth + k]);
      };
      context.add(__bfloat162float(outcome.context[(row * p.num_heads + h) * kWidth + k]),
                  reference.context[at]);
      dq.add(gradient(0), reference.dq[at]);
      dk.add(gradient(1), reference.dk[at]);
      dv.add(gradient(2), reference.dv[at]);
    }
  }
};

/// Whether results are zero in rows that belong to no sequence.
bool are_gaps_zero(const Problem& p, const Outcome& outcome) {
  std::vector<bool> is_used(p.sequences.num_rows, false);
  for (std::size_t s = 0; s < p.sequences.lengths.size(); ++s)
    for (int t = 0; t < p.sequences.lengths[s]; ++t) is_used[p.sequences.starts[s] + t] = true;
  const std::int64_t row_values = static_cast<std::int64_t>(p.num_heads) * kWidth;
  const auto are_zero = [](const Bf16s& values, std::int64_t begin, std::int64_t count) {
    return std::all_of(&values[begin], &values[begin] + count,
                       [](__nv_bfloat16 value) { return __bfloat162float(value) == 0; });
  };
  for (std::int64_t row = 0; row < p.sequences.num_rows; ++row) {
    if (is_used[row]) continue;
    if (!are_zero(outcome.context, row * row_values, row_values) ||
        !are_zero(outcome.dqkv, row * 3 * row_values, 3 * row_values))
      return false;
  }
  return true;
}

bool check(const std::string& name, const Problem& p) {
  const Outcome outcome(p);
  const Errors errors(p, outcome);
  const bool gaps_are_zero = are_gaps_zero(p, outcome);
  const bool is_good = outcome.is_repeatable && gaps_are_zero && errors.are_small();
  std::printf("%-6s %-28s O %.1e lse %.1e dQ %.1e dK %.1e dV %.1e%s%s\n", is_good ? "ok" : "WRONG",
              name.c_str(), errors.context.value(), errors.lse.value(), errors.dq.value(), errors.dk.value(),
              errors.dv.value(), outcome.is_repeatable ? "" : " bytes differ",
              gaps_are_zero ? "" : " gaps not zero");
  return is_good;
}

double median_ms(const std::function<void()>& run) {
  constexpr int kWarmups = 5, kRepeats = 30;
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int i = 0; i < kWarmups + kRepeats; ++i) {
    require(cudaEventRecord(begin), "record");
    run();
    require(cudaEventRecord(end), "record");
    require(cudaEventSynchronize(end), "kernels");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "time");
    if (i >= kWarmups) times.push_back(ms);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

/// Under load for a while, when the clock has fallen to what the power limit allows: the mean over as long.
double sustained_ms(const std::function<void()>& run, double expected_ms) {
  constexpr double kLoadMs = 400;
  const int num_runs = static_cast<int>(kLoadMs / expected_ms) + 1;
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  for (int i = 0; i < num_runs; ++i) run();
  require(cudaEventRecord(begin), "record");
  for (int i = 0; i < num_runs; ++i) run();
  require(cudaEventRecord(end), "record");
  require(cudaEventSynchronize(end), "kernels");
  float ms = 0;
  require(cudaEventElapsedTime(&ms, begin, end), "time");
  return ms / num_runs;
}

template <typename Runner>
void time_sustained(const std::string& name, const Runner& runner) {
  const double forward = sustained_ms([&] { runner.forward(); }, 0.15);
  const double backward = sustained_ms([&] { runner.backward(); }, 0.4);
  std::printf("%-22s forward %.3f ms backward %.3f ms both %.3f, under load\n", name.c_str(), forward,
              backward, forward + backward);
}

template <typename Runner>
void time_problem(const std::string& name, const Problem& p, const Runner& runner) {
  double squares = 0;
  for (const double length : p.sequences.lengths) squares += length * length;
  const double unit = 2e-9 * squares * p.num_heads * kWidth;
  const double forward = median_ms([&] { runner.forward(); });
  const double backward = median_ms([&] { runner.backward(); });
  std::printf("%-22s forward %.3f ms (%.0f TFLOP/s) backward %.3f ms (%.0f TFLOP/s) both %.3f\n",
              name.c_str(), forward, 2 * unit / forward, backward, 5 * unit / backward, forward + backward);
}

void time_problem(const std::string& name, const Problem& p) {
  time_problem(name, p, p);
}

/// The same work in groups of sequences of similar length, each launched on a stream of its own.
class GroupedProblem {
 public:
  explicit GroupedProblem(const Problem& problem)
      : problem_(problem), counts_(group_counts(problem.sequences)) {
    require(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "event");
    for (std::size_t g = 0; g < kNumGroups; ++g) {
      require(cudaStreamCreateWithFlags(&streams_[g], cudaStreamNonBlocking), "stream");
      require(cudaEventCreateWithFlags(&joins_[g], cudaEventDisableTiming), "event");
    }
  }
  void forward() const { run(attention_forward_sm90); }
  void backward() const { run(attention_backward_sm90); }

 private:
  static constexpr std::size_t kNumGroups = 4;
  static constexpr std::int32_t kShortest[kNumGroups] = {385, 257, 129, 1};
  static constexpr std::int32_t kLongest[kNumGroups] = {512, 384, 256, 128};

  /// For each group: tiles before it, its tiles, its counter, and a number of gaps that is zero.
  static std::vector<std::int32_t> group_counts(const Sequences& sequences) {
    std::vector<std::int32_t> counts;
    std::int32_t before = 0;
    for (std::size_t g = 0; g < kNumGroups; ++g) {
      const auto num_until = static_cast<std::int32_t>(
          std::count_if(sequences.lengths.begin(), sequences.lengths.end(),
                        [&](std::int32_t length) { return length >= kShortest[g]; }));
      counts.insert(counts.end(), {before, num_until - before, 0, 0});
      before = num_until;
    }
    return counts;
  }

  void run(cudaError_t (*launch)(const AttentionArguments&, cudaStream_t)) const {
    require(cudaEventRecord(fork_), "fork");
    for (std::size_t g = 0; g < kNumGroups; ++g) {
      AttentionArguments args = problem_.arguments();
      args.tiles += before_[4 * g];
      args.num_tiles = counts_.data() + 4 * g + 1;
      args.next_item = counts_.data() + 4 * g + 2;
      args.num_gaps = counts_.data() + 4 * g + 3;
      args.max_length = kLongest[g];
      args.scratch = scratch_.data() + g * scratch_bytes();  // groups run at the same time
      require(cudaStreamWaitEvent(streams_[g], fork_), "fork");
      start(launch, args, streams_[g]);
      require(cudaEventRecord(joins_[g], streams_[g]), "join");
      require(cudaStreamWaitEvent(nullptr, joins_[g]), "join");
    }
  }

  static std::size_t scratch_bytes() { return attention_scratch_bytes_sm90(kLongest[0]); }

  const Problem& problem_;
  DeviceArray<unsigned char> scratch_{kNumGroups * scratch_bytes()};
  std::vector<std::int32_t> before_ = group_counts(problem_.sequences);
  DeviceArray<std::int32_t> counts_;
  cudaEvent_t fork_;
  cudaEvent_t joins_[kNumGroups];
  cudaStream_t streams_[kNumGroups];
};

/// Lengths drawn from a histogram until num_rows are full; the last sequence is cut.
std::vector<std::int32_t> draw_lengths(const char* path, std::int32_t num_rows) {
  std::ifstream file(path);
  std::vector<double> counts;
  for (double count; file >> count;) counts.push_back(count);
  if (counts.empty()) {
    std::printf("no histogram: %s\n", path);
    std::exit(2);
  }
  std::mt19937 generator(7);
  std::discrete_distribution<std::int32_t> draw(counts.begin(), counts.end());
  std::vector<std::int32_t> lengths;
  while (num_rows > 0) {
    lengths.push_back(std::min(draw(generator) + 1, num_rows));
    num_rows -= lengths.back();
  }
  return lengths;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that a kernel that hangs is known by what is missing
  const std::vector<std::int32_t> odd = {1, 2, 63, 64, 65, 127, 128, 129, 200, 512, 700};
  bool is_good = check("one head of 64", Problem(Sequences({64}, 0), 1));
  is_good = check("one head of 512", Problem(Sequences({512}, 0), 1)) && is_good;
  is_good = check("odd lengths, 3 heads", Problem(Sequences(odd, 0), 3)) && is_good;
  is_good = check("odd lengths, gaps, 2 heads", Problem(Sequences(odd, 37), 2)) && is_good;
  is_good = check("long", Problem(Sequences({1000, 1500, 833, 641}, 0), 1)) && is_good;
  is_good = check("many short", Problem(Sequences(std::vector<std::int32_t>(300, 17), 0), 2)) && is_good;
  is_good = check("odd lengths, gaps, dropout", Problem(Sequences(odd, 5), 2, 26)) && is_good;
  is_good = check("long, half dropped", Problem(Sequences({1000, 1500, 833, 641}, 0), 1, 128)) && is_good;
  if (!is_good || argc < 2) return is_good ? 0 : 1;

  const std::vector<std::int32_t> lengths = draw_lengths(argv[1], 32768);
  if (argc > 2) {
    std::ofstream out(argv[2]);
    for (const std::int32_t length : lengths) out << length << "\n";
  }
  {
    const Problem p(Sequences(lengths, 0), 16);
    time_problem("histogram, H=16", p);
    const GroupedProblem groups(p);
    time_problem("same, four streams", p, groups);
    time_sustained("histogram, H=16", p);
    time_sustained("same, four streams", groups);
    time_sustained("histogram, H=16", p);
  }
  {
    const Problem p(Sequences(lengths, 0), 16, 26);
    std::printf("keep bits, H=16: by query %.3f ms, by key %.3f ms, both %.3f ms\n",
                median_ms([&] { p.draw(true, false); }), median_ms([&] { p.draw(false, true); }),
                median_ms([&] { p.draw(true, true); }));
    time_problem("same, dropout", p);
    time_sustained("same, dropout", p);
    std::printf("keep bits, H=16: by query %.3f ms, by key %.3f ms, both %.3f ms, under load\n",
                sustained_ms([&] { p.draw(true, false); }, 0.08),
                sustained_ms([&] { p.draw(false, true); }, 0.08),
                sustained_ms([&] { p.draw(true, true); }, 0.08));
  }
  time_problem("histogram, H=12", Problem(Sequences(lengths, 0), 12));
  for (const std::int32_t length : {64, 128, 256, 384, 512, 2048})
    time_problem("length " + std::to_string(length) + ", H=16",
                 Problem(Sequences(std::vector<std::int32_t>(32768 / length, length), 0), 16));
  return 0;
}
