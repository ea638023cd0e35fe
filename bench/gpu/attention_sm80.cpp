// Attention by mma.sync on the GPU: checks it against the double-precision reference on odd shapes, then
// measures it on drawn lengths. attention_sm80 check | small | one HISTOGRAM | time HISTOGRAM

#include "plenum/kernels/cuda/attention/attention_sm80.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "plenum/kernels/cuda/attention/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention/attention_tiles.h"
#include "plenum/kernels/dropout.h"

#include "tests/reference/attention.h"
#include "tests/reference/attention_gradient.h"

namespace {

using namespace plenum;
using kernels::cuda::AttentionKeepBits;
using kernels::cuda::AttentionTile;

constexpr int kTileRows = kernels::cuda::kAttentionTileRows;

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Device memory, filled with ones' bits (not-a-numbers) unless it is given.
template <typename Element>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    require(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<std::size_t>(num_bytes(), 16)));
    poison();
  }
  explicit DeviceArray(const std::vector<Element>& host) : DeviceArray(host.size()) {
    require(cudaMemcpy(data_, host.data(), num_bytes(), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  void poison() { require(cudaMemset(data_, 0xFF, num_bytes())); }
  Element* data() const { return data_; }
  std::vector<Element> host() const {
    std::vector<Element> result(size_);
    require(cudaMemcpy(result.data(), data_, num_bytes(), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  std::size_t num_bytes() const { return size_ * sizeof(Element); }
  std::size_t size_ = 0;
  Element* data_ = nullptr;
};

// Normally distributed numbers; large tensors repeat some of a prime count.
std::vector<__nv_bfloat16> random_bf16(std::size_t size, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<__nv_bfloat16> result(size);
  constexpr std::size_t kDistinct = 1'000'003;
  for (std::size_t i = 0; i < size; ++i)
    result[i] = i < kDistinct ? __float2bfloat16(normal(random)) : result[i - kDistinct];
  return result;
}

std::vector<double> to_double(const std::vector<__nv_bfloat16>& x) {
  std::vector<double> result(x.size());
  std::transform(x.begin(), x.end(), result.begin(), [](__nv_bfloat16 v) { return __bfloat162float(v); });
  return result;
}

kernels::Dropout dropout_of(std::uint32_t threshold) {
  return {.threshold = threshold,
          .key = base::RandomFunction(7, base::Purpose::Dropout, 3).key(),
          .layer = 5,
          .site = kernels::DropoutSite::AttentionWeights};
}

// Everything of one problem on the device.
struct Run {
  reference::AttentionShape shape;
  kernels::Dropout dropout;
  std::vector<__nv_bfloat16> qkv_host, dcontext_host;
  std::vector<AttentionTile> tiles_host;
  std::vector<kernels::cuda::AttentionGap> gaps_host;
  int num_column_blocks;
  DeviceArray<AttentionTile> tiles;
  DeviceArray<kernels::cuda::AttentionGap> gaps;
  DeviceArray<std::int32_t> num_tiles, num_gaps;
  DeviceArray<std::int64_t> samples;
  DeviceArray<__nv_bfloat16> qkv, context, dcontext, dqkv;
  DeviceArray<float> lse;
  DeviceArray<std::byte> scratch;
  DeviceArray<std::uint32_t> by_query, by_key;
  int num_multiprocessors = 0;

  Run(const reference::AttentionShape& s, std::uint32_t threshold, float deviation)
      : shape(s),
        dropout(dropout_of(threshold)),
        qkv_host(random_bf16(s.rows * 3 * s.heads * s.width, deviation, 1)),
        dcontext_host(random_bf16(s.rows * s.heads * s.width, 1, 2)),
        tiles_host(kernels::cuda::make_attention_tiles(s.starts, s.lengths, kTileRows)),
        gaps_host(kernels::cuda::make_attention_gaps(s.starts, s.lengths, static_cast<std::int32_t>(s.rows))),
        num_column_blocks(
            (*std::max_element(s.lengths.begin(), s.lengths.end()) + AttentionKeepBits::kBlockColumns - 1) /
            AttentionKeepBits::kBlockColumns),
        tiles(tiles_host),
        gaps(gaps_host),
        num_tiles(std::vector<std::int32_t>{static_cast<std::int32_t>(tiles_host.size())}),
        num_gaps(std::vector<std::int32_t>{static_cast<std::int32_t>(gaps_host.size())}),
        samples(s.samples),
        qkv(qkv_host),
        context(s.rows * s.heads * s.width),
        dcontext(dcontext_host),
        dqkv(s.rows * 3 * s.heads * s.width),
        lse(s.rows * s.heads),
        scratch(kernels::cuda::attention_scratch_bytes_sm80(s.rows, s.heads)),
        by_query(s.rows * s.heads * num_column_blocks * AttentionKeepBits::kWords),
        by_key(s.rows * s.heads * num_column_blocks * AttentionKeepBits::kWords) {
    require(cudaDeviceGetAttribute(&num_multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  }

  AttentionKeepBits keep() const {
    if (!dropout.is_on()) return {};
    return {by_query.data(), by_key.data(), rows(), num_column_blocks};
  }
  int heads() const { return static_cast<int>(shape.heads); }
  int width() const { return static_cast<int>(shape.width); }
  int rows() const { return static_cast<int>(shape.rows); }

  void draw(bool is_by_key) const {
    kernels::cuda::draw_attention_keep_bits(nullptr, num_multiprocessors,
                                            {.tiles = tiles.data(),
                                             .num_tiles = num_tiles.data(),
                                             .tile_rows = kTileRows,
                                             .samples_S = samples.data(),
                                             .num_rows = rows(),
                                             .num_heads = heads(),
                                             .num_column_blocks = num_column_blocks,
                                             .threshold = dropout.threshold,
                                             .layer_and_site = dropout.layer_and_site(),
                                             .key = dropout.key,
                                             .by_query = by_query.data(),
                                             .by_key = is_by_key ? by_key.data() : nullptr});
  }
  kernels::cuda::AttentionArguments arguments() const {
    return {.qkv_T3HK = qkv.data(),
            .context_THK = context.data(),
            .lse_HT = lse.data(),
            .dcontext_THK = dcontext.data(),
            .dqkv_T3HK = dqkv.data(),
            .tiles = tiles.data(),
            .num_tiles = num_tiles.data(),
            .gaps = gaps.data(),
            .num_gaps = num_gaps.data(),
            .keep = keep(),
            .dropout_scale = dropout.scale(),
            .num_rows = rows(),
            .num_heads = heads(),
            .head_width = width(),
            .num_multiprocessors = num_multiprocessors,
            .max_length = num_column_blocks * AttentionKeepBits::kBlockColumns,
            .next_item = nullptr,
            .scratch = scratch.data()};
  }
  void forward() const { require(kernels::cuda::attention_forward_sm80(arguments(), nullptr)); }
  void backward() const { require(kernels::cuda::attention_backward_sm80(arguments(), nullptr)); }
  void all() {
    by_query.poison();
    by_key.poison();
    context.poison();
    dqkv.poison();
    lse.poison();
    scratch.poison();
    if (dropout.is_on()) draw(true);
    forward();
    backward();
    require(cudaGetLastError());
    require(cudaDeviceSynchronize());
  }
};

// |got - want| / |want| over the rows of sequences (where zeros are wanted, the root of the mean square);
// counts elements of padding that were written.
struct Difference {
  double relative = 0;
  std::size_t num_wrong_padding = 0;
};
Difference compare(const Run& run, const std::vector<double>& got, const std::vector<double>& want,
                   std::size_t per_row, std::size_t begin, std::size_t size) {
  std::vector<bool> is_real(run.shape.rows);
  for (std::size_t s = 0; s < run.shape.starts.size(); ++s)
    std::fill_n(is_real.begin() + run.shape.starts[s], run.shape.lengths[s], true);
  double error = 0;
  double norm = 0;
  std::size_t count = 0;
  Difference result;
  for (std::size_t row = 0; row < run.shape.rows; ++row) {
    for (std::size_t i = row * per_row + begin; i < row * per_row + begin + size; ++i) {
      if (is_real[row]) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
        ++count;
      } else if (got[i] != 0) {
        ++result.num_wrong_padding;
      }
    }
  }
  result.relative = std::sqrt(error / (norm > 0 ? norm : static_cast<double>(count)));
  return result;
}

std::size_t count_wrong_bits(const Run& run) {
  const auto by_query = run.by_query.host();
  const auto by_key = run.by_key.host();
  const std::size_t heads = run.shape.heads;
  std::size_t num_wrong = 0;
  const auto bit = [&](const std::vector<std::uint32_t>& words, std::size_t head, std::size_t row,
                       std::size_t column) {
    const std::size_t block = head * run.num_column_blocks + column / 128;
    const std::size_t word = (block * run.shape.rows + row) * 4 + column % 8 / 2;
    return (words[word] >> (column % 128 / 8 * 2 + column % 2)) & 1;
  };
  for (std::size_t s = 0; s < run.shape.starts.size(); ++s) {
    const auto sample = static_cast<std::uint64_t>(run.shape.samples[s]);
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::int32_t query = 0; query < run.shape.lengths[s]; ++query) {
        for (std::int32_t key = 0; key < run.shape.lengths[s]; ++key) {
          const bool want = reference::dropout_factor(run.dropout, sample, static_cast<std::uint32_t>(query),
                                                      static_cast<std::uint32_t>((head << 20) + key)) != 0;
          num_wrong += bit(by_query, head, run.shape.starts[s] + query, key) != want;
          num_wrong += bit(by_key, head, run.shape.starts[s] + key, query) != want;
        }
      }
    }
  }
  return num_wrong;
}

bool check(const char* name, const reference::AttentionShape& shape, std::uint32_t threshold, float deviation,
           double tolerance = 5e-3) {
  Run run(shape, threshold, deviation);
  run.all();
  const auto context = run.context.host();
  const auto lse = run.lse.host();
  const auto dqkv = run.dqkv.host();
  run.all();
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  };
  const bool is_same =
      same(context, run.context.host()) && same(lse, run.lse.host()) && same(dqkv, run.dqkv.host());

  const auto qkv = to_double(run.qkv_host);
  const auto want = reference::attention(shape, qkv, run.dropout);
  const auto dwant = reference::attention_gradient(shape, qkv, run.dropout, to_double(run.dcontext_host));
  const std::size_t part = shape.heads * shape.width;
  const auto dgot = to_double(dqkv);
  const Difference differences[] = {compare(run, to_double(context), want.context, part, 0, part),
                                    compare(run, dgot, dwant, 3 * part, 0, part),
                                    compare(run, dgot, dwant, 3 * part, part, part),
                                    compare(run, dgot, dwant, 3 * part, 2 * part, part)};
  double lse_error = 0;
  for (std::size_t s = 0; s < shape.starts.size(); ++s)
    for (std::size_t h = 0; h < shape.heads; ++h)
      for (std::int32_t i = 0; i < shape.lengths[s]; ++i) {
        const std::size_t at = h * shape.rows + shape.starts[s] + i;
        lse_error = std::max(lse_error, std::abs(lse[at] - want.lse[at]) / (1 + std::abs(want.lse[at])));
        if (std::isnan(lse[at])) lse_error = INFINITY;
      }
  const std::size_t num_wrong_bits = run.dropout.is_on() ? count_wrong_bits(run) : 0;
  bool is_good = is_same && num_wrong_bits == 0 && lse_error < 1e-4;
  std::size_t num_wrong = 0;
  for (const Difference& d : differences) {
    is_good = is_good && d.relative < tolerance && d.num_wrong_padding == 0;
    num_wrong += d.num_wrong_padding;
  }
  std::printf(
      "%-16s K %3zu H %zu drop %2u: O %.1e lse %.1e dQ %.1e dK %.1e dV %.1e padding %zu bits %zu %s %s\n",
      name, shape.width, shape.heads, threshold, differences[0].relative, lse_error, differences[1].relative,
      differences[2].relative, differences[3].relative, num_wrong, num_wrong_bits,
      is_same ? "same" : "DIFFERS", is_good ? "ok" : "WRONG");
  return is_good;
}

reference::AttentionShape shape_of(const std::vector<std::int32_t>& lengths, std::size_t heads,
                                   std::size_t width, std::int32_t gap) {
  reference::AttentionShape shape;
  shape.heads = heads;
  shape.width = width;
  std::int32_t row = gap;
  for (const std::int32_t length : lengths) {
    shape.starts.push_back(row);
    shape.lengths.push_back(length);
    shape.samples.push_back((std::int64_t{1} << 40) + 977 * row);
    row += length + (length % 3 == 0 ? gap : 0);
  }
  shape.rows = static_cast<std::size_t>(row + gap);
  return shape;
}

int check_all() {
  const std::vector<std::int32_t> odd{1, 2, 63, 64, 65, 127, 128, 129, 200, 512, 700, 31, 33, 95, 97, 256};
  bool is_good = true;
  for (const std::size_t width : {64, 128}) {
    for (const std::uint32_t threshold : {0U, 26U, 200U}) {
      is_good &= check("odd lengths", shape_of(odd, 3, width, 5), threshold, 1);
      is_good &= check("one token", shape_of({1}, 1, width, 0), threshold, 1, 2e-2);
      is_good &= check("two sequences", shape_of({130, 3}, 2, width, 1), threshold, 1);
    }
    // A weight near 1 leaves a gradient that is the difference of two large numbers, one from rounded O.
    is_good &= check("large scores", shape_of({300, 77}, 1, width, 3), 26, 6, 2e-2);
  }
  return is_good ? 0 : 1;
}

float median_microseconds(const std::function<void()>& work, int repeats) {
  cudaEvent_t begin;
  cudaEvent_t end;
  require(cudaEventCreate(&begin));
  require(cudaEventCreate(&end));
  for (int i = 0; i < 3; ++i) work();
  std::vector<float> times;
  for (int i = 0; i < repeats; ++i) {
    float milliseconds = 0;
    require(cudaEventRecord(begin));
    work();
    require(cudaEventRecord(end));
    require(cudaEventSynchronize(end));
    require(cudaEventElapsedTime(&milliseconds, begin, end));
    times.push_back(milliseconds * 1e3F);
  }
  require(cudaGetLastError());
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

std::vector<std::int32_t> draw_lengths(const char* histogram_path, std::int32_t num_tokens) {
  std::ifstream file(histogram_path);
  std::vector<double> counts;
  for (double count = 0; file >> count;) counts.push_back(count);
  if (counts.empty()) throw std::runtime_error("no histogram");
  std::mt19937 random(11);
  std::discrete_distribution<std::int32_t> length(counts.begin(), counts.end());
  std::vector<std::int32_t> lengths;
  for (std::int32_t left = num_tokens; left > 0;) {
    lengths.push_back(std::min(left, length(random) + 1));
    left -= lengths.back();
  }
  return lengths;
}

void time_all(const std::vector<std::int32_t>& lengths, const char* name) {
  for (const std::size_t width : {64, 128}) {
    double operations = 0;
    for (const double length : lengths) operations += 2 * length * length * 1024;
    for (const std::uint32_t threshold : {0U, 26U}) {
      Run run(shape_of(lengths, 1024 / width, width, 0), threshold, 1);
      run.all();
      struct Row {
        const char* name;
        std::function<void()> work;
        int products;
      };
      std::vector<Row> rows{{"forward", [&] { run.forward(); }, 2}, {"backward", [&] { run.backward(); }, 5}};
      if (threshold > 0) {
        rows.push_back({"bits by query", [&] { run.draw(false); }, 0});
        rows.push_back({"both", [&] { run.draw(true); }, 0});
      }
      std::printf("%s K %zu drop %u:", name, width, threshold);
      for (const Row& row : rows) {
        const float us = median_microseconds(row.work, 31);
        std::printf("  %s %.1f us", row.name, us);
        if (row.products > 0) std::printf(" (%.0f TFLOP/s)", operations * row.products / us / 1e6);
      }
      std::printf("\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
  try {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "check") return check_all();
    if (mode == "small") return check("small", shape_of({130, 33}, 1, 64, 1), 26, 1) ? 0 : 1;
    if (mode == "one" && argc > 2) {
      Run(shape_of(draw_lengths(argv[2], 32768), 16, 64, 0), 26, 1).all();
      return 0;
    }
    if (mode == "time" && argc > 2) {
      time_all(draw_lengths(argv[2], 32768), "wikipedia");
      time_all(std::vector<std::int32_t>(64, 512), "all 512");
      return 0;
    }
    std::fprintf(stderr, "attention_sm80 check | small | one HISTOGRAM | time HISTOGRAM\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attention_sm80: %s\n", error.what());
    return 1;
  }
}
