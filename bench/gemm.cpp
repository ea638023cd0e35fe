// Measures Plenum's matrix products, then OpenBLAS's, shape by shape, and prints GFLOP/s of the best of many
// runs: bench_gemm [--threads N] [--seconds PER_SHAPE]. OpenBLAS is looked up when it runs; on processors it
// does not know it takes kernels of 2004, so it is told the type unless OPENBLAS_CORETYPE is set.
#include "plenum/kernels/cpu/gemm.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "plenum/base/units.h"
#include "plenum/tensor/arena.h"

namespace {

using plenum::kernels::cpu::Gemm;

/// The few functions of OpenBLAS that are called, of its documented C interface.
class OpenBlas {
 public:
  explicit OpenBlas(int num_threads) {
    if (__builtin_cpu_supports("avx512f")) ::setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
    library_ = ::dlopen("libopenblas.so.0", RTLD_NOW);
    if (library_ == nullptr) return;
    sgemm_ = reinterpret_cast<Sgemm>(::dlsym(library_, "cblas_sgemm"));
    reinterpret_cast<void (*)(int)>(::dlsym(library_, "openblas_set_num_threads"))(num_threads);
  }

  bool is_found() const { return sgemm_ != nullptr; }
  const char* core_name() const {
    return reinterpret_cast<const char* (*)()>(::dlsym(library_, "openblas_get_corename"))();
  }
  void multiply(const Gemm& args) const {
    constexpr int kRowMajor = 101;
    constexpr int kAsItLies = 111;
    constexpr int kTransposed = 112;
    sgemm_(kRowMajor, args.a.is_transposed ? kTransposed : kAsItLies,
           args.b.is_transposed ? kTransposed : kAsItLies, static_cast<int>(args.m), static_cast<int>(args.n),
           static_cast<int>(args.k), 1, args.a.data, static_cast<int>(args.a.stride), args.b.data,
           static_cast<int>(args.b.stride), 0, args.c, static_cast<int>(args.c_stride));
  }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                         float*, int);

  void* library_ = nullptr;
  Sgemm sgemm_ = nullptr;
};

struct Product {
  std::int64_t m, n, k;
  bool a_is_transposed, b_is_transposed;
};

// Linear maps of BERT-base and BERT-mini forward (NT), to the input (NN) and to the weight (TN), and
// attention's.
constexpr Product kProducts[] = {
    {4096, 3072, 768, false, true}, {4096, 768, 3072, false, true},  {4096, 768, 768, false, true},
    {4096, 2304, 768, false, true}, {4096, 768, 3072, false, false}, {4096, 3072, 768, false, false},
    {4096, 768, 768, false, false}, {4096, 768, 2304, false, false}, {3072, 768, 4096, true, false},
    {768, 3072, 4096, true, false}, {768, 768, 4096, true, false},   {2304, 768, 4096, true, false},
    {1024, 1024, 256, false, true}, {1024, 256, 1024, false, true},  {1024, 256, 1024, false, false},
    {256, 1024, 1024, true, false}, {256, 256, 4096, true, false},   {768, 256, 4096, true, false},
    {1024, 256, 4096, true, false}, {512, 512, 64, false, true},     {512, 64, 512, false, false},
    {512, 64, 512, true, false},    {128, 128, 64, false, true},     {128, 64, 128, false, false}};

double now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Bench {
 public:
  Bench(int num_threads, double seconds)
      : seconds_(seconds),
        blas_(num_threads),
        pool_(static_cast<std::size_t>(num_threads)),
        arena_(layout()),
        stream_(pool_, arena_.view(scratch_).span<std::byte>()) {
    for (const plenum::tensor::Block& block : {a_, b_}) {
      std::vector<float>::size_type i = 0;
      for (float& value : arena_.view(block).span<float>()) value = static_cast<float>(i++ % 17) - 8;
    }
    fmt::print("{} threads, best of what {} s allow; OpenBLAS: {}\n", num_threads, seconds,
               blas_.is_found() ? blas_.core_name() : "not found");
    fmt::print("{:>5} {:>5} {:>5}    {:>8} {:>8} {:>6}\n", "m", "n", "k", "GFLOP/s", "OpenBLAS", "ratio");
  }

  void run(const Product& product) {
    const Gemm args = gemm_of(product);
    const double flops =
        2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
    constexpr double kFlopsOfAMeasurement = 2e8;
    const int repetitions = std::max(1, static_cast<int>(kFlopsOfAMeasurement / flops));
    const double ours = best_seconds([&] { parallel_gemm(stream_, args); }, repetitions);
    const double theirs = blas_.is_found() ? best_seconds([&] { blas_.multiply(args); }, repetitions) : ours;
    fmt::print("{:>5} {:>5} {:>5} {}{} {:>8.1f} {:>8.1f} {:>6.2f}\n", args.m, args.n, args.k,
               args.a.is_transposed ? 'T' : 'N', args.b.is_transposed ? 'T' : 'N', flops / ours / 1e9,
               flops / theirs / 1e9, theirs / ours);
    std::fflush(stdout);
  }

 private:
  /// Of what the time allows. Threads of OpenBLAS go on spinning for a while when their work is done: they
  /// are waited for.
  double best_seconds(const std::function<void()>& work, int repetitions) const {
    ::usleep(200'000);
    work();  // memory that is touched for the first time is slow
    double best = std::numeric_limits<double>::infinity();
    const double end = now(CLOCK_MONOTONIC) + seconds_;
    do {
      best = std::min(best, seconds_of(work, repetitions));
    } while (now(CLOCK_MONOTONIC) < end);
    return best;
  }

  /// Of one of the repetitions. One thread's own time counts, so that other programs on the machine do not;
  /// what several take together only the clock on the wall tells.
  double seconds_of(const std::function<void()>& work, int repetitions) const {
    const clockid_t clock = pool_.num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    const double begin = now(clock);
    for (int i = 0; i < repetitions; ++i) work();
    return (now(clock) - begin) / repetitions;
  }

  plenum::tensor::MemoryLayout layout() {
    using plenum::tensor::DType;
    constexpr std::int64_t kLargest = std::int64_t{4096} * 3072;
    plenum::tensor::MemoryLayout layout;
    scratch_ = layout.add(
        "scratch", DType::Byte,
        {static_cast<std::int64_t>(pool_.num_threads() * plenum::kernels::cpu::gemm_scratch_bytes())});
    a_ = layout.add("factors", DType::Float32, {kLargest});
    b_ = layout.add("factors", DType::Float32, {kLargest});
    c_ = layout.add("products", DType::Float32, {kLargest});
    return layout;
  }

  Gemm gemm_of(const Product& product) const {
    return {.m = product.m,
            .n = product.n,
            .k = product.k,
            .a = {.data = arena_.view(a_).data<float>(),
                  .stride = product.a_is_transposed ? product.m : product.k,
                  .is_transposed = product.a_is_transposed},
            .b = {.data = arena_.view(b_).data<float>(),
                  .stride = product.b_is_transposed ? product.k : product.n,
                  .is_transposed = product.b_is_transposed},
            .c = arena_.view(c_).data<float>(),
            .c_stride = product.n};
  }

  double seconds_;
  OpenBlas blas_;
  plenum::base::ThreadPool pool_;
  plenum::tensor::Block scratch_, a_, b_, c_;
  plenum::tensor::Arena arena_;
  plenum::tensor::Stream stream_;
};

}  // namespace

int main(int argc, char** argv) {
  int num_threads = 1;
  double seconds = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) {
      num_threads = static_cast<int>(plenum::base::parse_integer(argv[i + 1], "--threads"));
    } else if (std::strcmp(argv[i], "--seconds") == 0) {
      seconds = plenum::base::parse_number(argv[i + 1], "--seconds");
    } else {
      fmt::print(stderr, "bench_gemm knows --threads N and --seconds PER_SHAPE, not {}\n", argv[i]);
      return 2;
    }
  }
  Bench bench(num_threads, seconds);
  for (const Product& product : kProducts) bench.run(product);
  return 0;
}
