#include "plenum/kernels/gemm_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "plenum/base/philox.h"
#include "plenum/kernels/linear.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/precision.h"
#include "plenum/tensor/stream.h"

namespace plenum::kernels {
namespace {

/// The arguments of a product, and scratch.
class Product {
 public:
  Product(tensor::Device device, std::int64_t T, std::int64_t D, std::int64_t E, std::size_t scratch_bytes)
      : flops_(2.0 * static_cast<double>(T * D * E)),
        x_TD_(layout_.add("rate", tensor::precision_of(device).of(tensor::Role::Activation), {T, D})),
        w_ED_(layout_.add("rate", tensor::precision_of(device).of(tensor::Role::Weight), {E, D})),
        y_TE_(layout_.add("rate", tensor::precision_of(device).of(tensor::Role::Activation), {T, E})),
        scratch_(layout_.add("rate", tensor::DType::Byte, {static_cast<std::int64_t>(scratch_bytes)})),
        arena_(layout_, device) {}

  tensor::TensorView x_TD() const { return arena_.view(x_TD_); }
  tensor::TensorView w_ED() const { return arena_.view(w_ED_); }
  std::span<std::byte> scratch() const { return arena_.view(scratch_).span<std::byte>(); }

  /// In bursts of so many products, one after the other, until the time is over.
  GemmRate measure(const tensor::Stream& stream, int burst, double seconds) const {
    using Clock = std::chrono::steady_clock;
    std::vector<double> ends;  // of the bursts, in seconds
    const Clock::time_point begin = Clock::now();
    while (ends.empty() || ends.back() < seconds) {
      for (int i = 0; i < burst; ++i) run(stream);
      stream.wait();
      ends.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    double shortest = ends.front();
    for (std::size_t i = 1; i < ends.size(); ++i) shortest = std::min(shortest, ends[i] - ends[i - 1]);
    const std::size_t first = ends.size() / 2;  // of the second half
    const double half = ends.back() - (first == 0 ? 0 : ends[first - 1]);
    return {.fastest = burst * flops_ / shortest,
            .sustained = static_cast<double>(ends.size() - first) * burst * flops_ / half};
  }
  void run(const tensor::Stream& stream) const {
    linear_forward(stream, {.x_TD = x_TD(), .w_ED = w_ED(), .y_TE = arena_.view(y_TE_)});
  }

 private:
  double flops_;
  tensor::MemoryLayout layout_;
  tensor::Block x_TD_, w_ED_, y_TE_, scratch_;
  tensor::Arena arena_;
};

/// Random numbers, again and again: a GPU that multiplies equal ones draws less power and runs faster.
void fill(const tensor::Stream& stream, const tensor::TensorView& view) {
  const base::RandomFunction random(0, base::Purpose::Initialisation);
  std::vector<tensor::BFloat16> values(std::size_t{1} << 16);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor::to_bfloat16(static_cast<float>(2 * base::to_unit_interval(random(i)) - 1));
  }
  const std::span<tensor::BFloat16> all = view.span<tensor::BFloat16>();
  for (std::size_t begin = 0; begin < all.size(); begin += values.size()) {
    const auto size = static_cast<std::int64_t>(std::min(values.size(), all.size() - begin));
    tensor::copy(stream, tensor::ConstTensorView(values.data(), {size}),
                 tensor::TensorView(all.data() + begin, {size}));
  }
  stream.wait();
}

}  // namespace

GemmRate measure_gemm_rate(base::ThreadPool& pool, double seconds) {
  const Product product(tensor::Device::Cpu, 1024, 768, 768,
                        pool.num_threads() * linear_scratch_bytes(tensor::Device::Cpu));
  const tensor::Stream stream(pool, product.scratch());
  // What is multiplied changes nothing but zeros in memory that was never written, which all lie in one page.
  for (const tensor::TensorView& view : {product.x_TD(), product.w_ED()}) {
    std::ranges::fill(view.span<float>(), 1.0F);
  }
  return product.measure(stream, 1, seconds);
}

GemmRate measure_cuda_gemm_rate(double seconds) {
  // So many at a time that starting them does not count.
  constexpr int kBurst = 20;
  const tensor::CudaStream queue;
  const Product product(tensor::Device::Cuda, 8192, 4096, 4096, linear_scratch_bytes(tensor::Device::Cuda));
  const tensor::Stream stream(queue, product.scratch());
  for (const tensor::TensorView& view : {product.x_TD(), product.w_ED()}) fill(stream, view);
  product.run(stream);  // chooses its algorithm
  return product.measure(stream, kBurst, seconds);
}

}  // namespace plenum::kernels
