// The matrix products of BERT's layers as a training step runs them: on a GPU at its limit of power, where an
// algorithm that needs less energy runs at a higher clock. Compares the algorithms that give the bytes of the
// library's first proposal, those among them that it does not propose too.
//
//     bench_gpu_products [WIDTH [TURN_MS [ROUNDS]]]
//
// Of each product the best are timed twice: one run after the other, at a clock that all share, and in turns
// that are long enough for the clock to follow. A step lies between the two.

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/kernels/cuda/product/lt_matmul.h"
#include "plenum/kernels/cuda/rows/checksum.h"
#include "plenum/kernels/matmul_choices.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"

#include "bench/gpu/layer_products.h"
#include "bench/gpu/timing.h"

namespace plenum {
namespace {

using Algorithm = cublasLtMatmulAlgo_t;
using Words = std::array<std::uint64_t, 8>;
using bench::Product;
using bench::ProductBuffers;
using kernels::Accumulate;
using kernels::cuda::check_lt;
using kernels::cuda::LtMatmul;
using kernels::cuda::Matmul;
using tensor::check_cuda;

constexpr std::int64_t kTokens = 32768;
constexpr std::size_t kFinalists = 6;
constexpr int kSharedRounds = 40;

struct Settings {
  double turn_ms = 200;
  int rounds = 4;
};

Words words_of(const Algorithm& algorithm) {
  return std::bit_cast<Words>(algorithm);
}

template <typename Value>
Value attribute(const Algorithm& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  Value value{};
  std::size_t num_bytes = 0;
  check_lt(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof(value), &num_bytes),
           "describe an algorithm");
  return value;
}

template <typename Value>
bool set(Algorithm& algorithm, cublasLtMatmulAlgoConfigAttributes_t which, const Value& value) {
  return cublasLtMatmulAlgoConfigSetAttribute(&algorithm, which, &value, sizeof(value)) ==
         CUBLAS_STATUS_SUCCESS;
}

/// Algorithms that differ from this one in tile, cluster or the order of tiles.
std::vector<Algorithm> variants(const Algorithm& algorithm) {
  constexpr std::array<std::uint32_t, 7> kTiles = {CUBLASLT_MATMUL_TILE_128x256, CUBLASLT_MATMUL_TILE_256x128,
                                                   CUBLASLT_MATMUL_TILE_128x192, CUBLASLT_MATMUL_TILE_192x128,
                                                   CUBLASLT_MATMUL_TILE_128x160, CUBLASLT_MATMUL_TILE_160x128,
                                                   CUBLASLT_MATMUL_TILE_128x128};
  constexpr std::array<std::uint16_t, 3> kClusters = {
      CUBLASLT_CLUSTER_SHAPE_2x1x1, CUBLASLT_CLUSTER_SHAPE_1x2x1, CUBLASLT_CLUSTER_SHAPE_1x1x1};
  std::vector<Algorithm> result;
  for (const std::uint32_t tile : kTiles) {
    for (const std::uint16_t cluster : kClusters) {
      for (const std::uint32_t swizzle : {0U, 1U}) {
        Algorithm variant = algorithm;
        if (set(variant, CUBLASLT_ALGO_CONFIG_TILE_ID, tile) &&
            set(variant, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, cluster) &&
            set(variant, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle)) {
          result.push_back(variant);
        }
      }
    }
  }
  return result;
}

/// An algorithm, and what was measured of it.
struct Candidate {
  Algorithm algorithm;
  std::string label;  ///< its number among the library's proposals, or "variant"
  bool is_tuned = false;
  double shared_ms = 0;  ///< at the clock of all
  double turn_ms = 0;    ///< at its own
};

class Comparison {
 public:
  Comparison(const tensor::Stream& stream, cublasLtHandle_t library, const Product& one,
             const Settings& settings)
      : stream_(stream), library_(library), one_(one), product_(one.args), settings_(settings) {
    check_cuda(cudaEventCreate(&begin_), "make an event");
    check_cuda(cudaEventCreate(&end_), "make an event");
  }
  ~Comparison() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  /// Brings the GPU to its limit of power.
  void warm_up() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < end) time_ms(50, product_.candidates(library_, kBytes, 1)[0]);
  }

  void run() {
    find_candidates();
    measure_shared(3);
    keep_finalists();
    measure_shared(kSharedRounds);
    measure_turns();
    print();
  }

 private:
  static constexpr std::size_t kBytes = kernels::cuda::kMatmulWorkspaceBytes;

  cudaStream_t queue() const { return stream_.cuda().handle(); }
  std::span<std::byte> workspace() const { return stream_.scratch().first(kBytes); }

  void start(const Algorithm& algorithm) const {
    product_.run(library_, algorithm, one_.args.c, workspace(), queue());
  }
  /// Of one, run so many times.
  double time_ms(int count, const Algorithm& algorithm) const {
    check_cuda(cudaEventRecord(begin_, queue()), "measure");
    for (int i = 0; i < count; ++i) start(algorithm);
    check_cuda(cudaEventRecord(end_, queue()), "measure");
    check_cuda(cudaEventSynchronize(end_), "measure");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "measure");
    return static_cast<double>(ms) / count;
  }

  /// What the tuner takes for it.
  Words tuned() const {
    kernels::cuda::matmul(stream_, one_.args);
    const std::string text = kernels::matmul_choices(stream_).algorithms.at(product_.kind());
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = std::stoull(text.substr(16 * i, 16), nullptr, 16);
    }
    return words;
  }

  void find_candidates() {
    const Words tuned_words = tuned();
    std::vector<Algorithm> all = product_.candidates(library_, kBytes, 16);
    const std::size_t num_proposals = all.size();
    if (one_.args.bias != nullptr) {
      Matmul plain = one_.args;
      plain.bias = nullptr;
      const std::vector<Algorithm> more = LtMatmul(plain).candidates(library_, kBytes, 16);
      all.insert(all.end(), more.begin(), more.end());
    }
    const std::vector<Algorithm> proposals = all;
    for (const Algorithm& proposal : proposals) {
      const std::vector<Algorithm> more = variants(proposal);
      all.insert(all.end(), more.begin(), more.end());
    }
    std::set<Words> seen;
    std::optional<std::uint64_t> expected;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!seen.insert(words_of(all[i])).second || !product_.suits(library_, all[i], kBytes)) continue;
      ++num_suitable_;
      const std::uint64_t sum = checksum(all[i]);
      if (!expected) expected = sum;
      if (sum != *expected) continue;
      candidates_.push_back({.algorithm = all[i],
                             .label = i < num_proposals ? fmt::format("#{}", i) : "variant",
                             .is_tuned = words_of(all[i]) == tuned_words});
    }
    num_alike_ = candidates_.size();
  }

  std::uint64_t checksum(const Algorithm& algorithm) const {
    const Matmul& args = one_.args;
    auto* const sum = reinterpret_cast<std::uint64_t*>(stream_.scratch().data() + kBytes);
    const std::size_t row_bytes = static_cast<std::size_t>(args.n) * size_of(args.c_dtype);
    const std::size_t stride_bytes = static_cast<std::size_t>(args.c_stride) * size_of(args.c_dtype);
    const tensor::CudaStream& queue = stream_.cuda();
    tensor::zero_cuda(queue, sum, sizeof(*sum));
    if (args.accumulate == Accumulate::Yes) {
      tensor::zero_cuda(queue, args.c, static_cast<std::size_t>(args.m) * stride_bytes);
    }
    start(algorithm);
    kernels::cuda::add_checksum(queue, args.c, args.m, row_bytes, stride_bytes, sum);
    std::uint64_t found = 0;
    tensor::copy_cuda(queue, sum, &found, sizeof(found));
    queue.wait();
    return found;
  }

  void measure_shared(int rounds) {
    std::vector<cudaEvent_t> events(candidates_.size() + 1);
    for (cudaEvent_t& event : events) check_cuda(cudaEventCreate(&event), "make an event");
    for (Candidate& candidate : candidates_) candidate.shared_ms = 0;
    for (int round = 0; round < rounds; ++round) {
      check_cuda(cudaEventRecord(events[0], queue()), "measure");
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        start(candidates_[i].algorithm);
        check_cuda(cudaEventRecord(events[i + 1], queue()), "measure");
      }
      check_cuda(cudaEventSynchronize(events.back()), "measure");
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        float ms = 0;
        check_cuda(cudaEventElapsedTime(&ms, events[i], events[i + 1]), "measure");
        candidates_[i].shared_ms += static_cast<double>(ms) / rounds;
      }
    }
    for (const cudaEvent_t event : events) cudaEventDestroy(event);
  }

  /// The fastest at first sight, the library's own choice and the tuner's.
  void keep_finalists() {
    std::ranges::sort(candidates_, {}, &Candidate::shared_ms);
    std::vector<Candidate> kept;
    for (const Candidate& candidate : candidates_) {
      if (kept.size() < kFinalists || candidate.is_tuned || candidate.label == "#0")
        kept.push_back(candidate);
    }
    candidates_ = std::move(kept);
  }

  /// Forth and back, because each runs at a clock that the one before has left; half of a turn is for that.
  void measure_turns() {
    for (int round = 0; round < settings_.rounds; ++round) {
      for (Candidate& candidate : candidates_) {
        const int count = std::max(1, static_cast<int>(settings_.turn_ms / 2 / candidate.shared_ms));
        time_ms(count, candidate.algorithm);
        candidate.turn_ms += time_ms(count, candidate.algorithm) / settings_.rounds;
      }
      std::ranges::reverse(candidates_);
    }
  }

  void print() {
    std::ranges::sort(candidates_, {}, &Candidate::turn_ms);
    fmt::print("\n{}, {} x {} x {}: {} of {} algorithms give the same bytes\n", one_.name, one_.args.m,
               one_.args.n, one_.args.k, num_alike_, num_suitable_);
    fmt::print("| | tile | cluster | option | order | shared clock ms | in turns ms | TFLOP/s |\n");
    fmt::print("|---|---|---|---|---|---|---|---|\n");
    for (const Candidate& one : candidates_) {
      const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t which) {
        return attribute<std::uint32_t>(one.algorithm, which);
      };
      fmt::print("| {}{} | {} | {} | {} | {} | {:.4f} | {:.4f} | {:.0f} |\n", one.label,
                 one.is_tuned ? ", tuned" : "", number(CUBLASLT_ALGO_CONFIG_TILE_ID),
                 attribute<std::uint16_t>(one.algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                 number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION), number(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
                 one.shared_ms, one.turn_ms, one_.num_flops() / one.turn_ms * 1e-9);
    }
    std::fflush(stdout);
  }

  const tensor::Stream& stream_;
  cublasLtHandle_t library_;
  const Product& one_;
  LtMatmul product_;
  Settings settings_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::vector<Candidate> candidates_;
  std::size_t num_alike_ = 0;
  int num_suitable_ = 0;
};

void run(std::int64_t width, const Settings& settings) {
  const tensor::CudaStream queue;
  const ProductBuffers buffers(queue, static_cast<std::size_t>(kTokens * 4 * width));
  const tensor::Stream stream(queue, buffers.scratch());
  cublasLtHandle_t library = nullptr;
  check_lt(cublasLtCreate(&library), "start");
  fmt::print("{}, cuBLASLt {}, {} tokens. Tiles, clusters, options and orders are the library's numbers.\n",
             tensor::cuda_device_info().name, cublasLtGetVersion(), kTokens);
  const std::vector<Product> products = bench::layer_products(buffers, kTokens, width);
  Comparison(stream, library, products.front(), settings).warm_up();
  for (const Product& one : products) Comparison(stream, library, one, settings).run();
  cublasLtDestroy(library);
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  try {
    plenum::Settings settings;
    if (argc > 2) settings.turn_ms = std::atof(argv[2]);
    if (argc > 3) settings.rounds = std::atoi(argv[3]);
    plenum::run(argc > 1 ? std::atol(argv[1]) : 1024, settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_gpu_products: {}\n", error.what());
    return 2;
  }
}
