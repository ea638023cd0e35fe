// The matrix products of BERT's layers on the GPU: what the library's first choice of an algorithm reaches,
// what the measured choice reaches, and what is left without the bias; then, at the limit of power, the
// products with GELU as MLPs compute them beside the library's.
//
//     bench_gpu_linear [TOKENS]

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/kernels/activation.h"
#include "plenum/kernels/cuda/product/lt_matmul.h"
#include "plenum/kernels/cuda/product/matmul.h"
#include "plenum/kernels/cuda/product/matmul_tuner.h"
#include "plenum/kernels/cuda/rows/column_sums.h"
#include "plenum/kernels/cuda/rows/gelu_gradient.h"
#include "plenum/kernels/gemm_rate.h"
#include "plenum/kernels/mlp_gelu.h"
#include "plenum/tensor/cuda_device.h"

#include "bench/gpu/layer_products.h"
#include "bench/gpu/timing.h"

namespace plenum {
namespace {

using bench::Product;
using bench::ProductBuffers;
using kernels::cuda::Matmul;
using tensor::BFloat16;

/// No product finds what it reads in the second-level cache: its larger factor alone is beyond that.
double time_ms(const tensor::Stream& stream, const std::function<void()>& work) {
  return bench::median_ms(stream.cuda().handle(), [&](int) { work(); });
}

/// The algorithm that the library expects to be the fastest.
double first_choice_ms(const tensor::Stream& stream, cublasLtHandle_t library, const Matmul& args) {
  const kernels::cuda::LtMatmul product(args);
  const std::span<std::byte> workspace = stream.scratch().first(kernels::cuda::kMatmulWorkspaceBytes);
  const auto first = product.candidates(library, workspace.size(), 1);
  return time_ms(stream,
                 [&] { product.run(library, first.at(0), args.c, workspace, stream.cuda().handle()); });
}

double tuned_ms(const tensor::Stream& stream, const Matmul& args) {
  return time_ms(stream, [&] { kernels::cuda::matmul(stream, args); });
}

void bench_model(const tensor::Stream& stream, const ProductBuffers& buffers, cublasLtHandle_t library,
                 const std::string& name, std::int64_t T, std::int64_t D) {
  fmt::print("\n| {} | m x n x k | first ms | TFLOP/s | tuned ms | TFLOP/s | plain ms | TFLOP/s |\n", name);
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  double all_ms = 0;
  double all_flops = 0;
  for (const Product& one : bench::layer_products(buffers, T, D)) {
    const Matmul& product = one.args;
    Matmul plain = product;
    plain.bias = nullptr;
    const double flops = one.num_flops();
    const auto rate = [flops](double ms) { return flops / ms * 1e-9; };
    const double first = first_choice_ms(stream, library, product);
    const double tuned = tuned_ms(stream, product);
    const double without = tuned_ms(stream, plain);
    fmt::print("| {} | {} x {} x {} | {:.4f} | {:.0f} | {:.4f} | {:.0f} | {:.4f} | {:.0f} |\n", one.name,
               product.m, product.n, product.k, first, rate(first), tuned, rate(tuned), without,
               rate(without));
    all_ms += tuned;
    all_flops += flops;
  }
  fmt::print("| a layer | | | | {:.4f} | {:.0f} | | |\n", all_ms, all_flops / all_ms * 1e-9);
}

void print_pass(const std::string& name, std::size_t num_bytes, double ms) {
  fmt::print("| {} | {:.4f} | {:.2f} |\n", name, ms, static_cast<double>(num_bytes) / ms * 1e-9);
}

/// What goes over memory beside the products.
void bench_passes(const tensor::Stream& stream, const ProductBuffers& buffers, std::int64_t T) {
  fmt::print("\n| pass | ms | TB/s |\n|---|---|---|\n");
  auto* const sums = reinterpret_cast<float*>(buffers.at(2));
  for (const std::int64_t E : {768, 1024, 2304, 3072, 4096}) {
    const tensor::TensorView x_TE(buffers.at(0), {T, E});
    print_pass(fmt::format("sums of columns {} x {}", T, E), x_TE.num_bytes(),
               time_ms(stream, [&] { kernels::cuda::add_sum_of_rows(stream, x_TE, sums); }));
  }
  for (const std::int64_t E : {3072, 4096}) {
    const tensor::TensorView x_TE(buffers.at(0), {T, E});
    const tensor::TensorView u_TE(buffers.at(1), {T, E});
    print_pass(fmt::format("gelu {} x {}", T, E), 2 * x_TE.num_bytes(),
               time_ms(stream, [&] { kernels::gelu_forward(stream, {.x = u_TE, .y = x_TE}); }));
    // Multiplied again and again x would vanish; it is read and written all the same.
    print_pass(fmt::format("gelu' with sums {} x {}", T, E), 3 * x_TE.num_bytes(),
               time_ms(stream, [&] { kernels::cuda::multiply_gelu_derivative(stream, u_TE, x_TE, sums); }));
  }
}

/// Two ways in turns of about 100 ms, five each, the first of which only warms the GPU up: their mean times.
std::pair<double, double> in_turn_ms(const tensor::Stream& stream, const std::function<void()>& one,
                                     const std::function<void()>& other) {
  constexpr int kRounds = 4;
  const bench::Timing turn = {.num_warm_up = 50, .num_samples = 1, .runs_of_sample = 200};
  const auto turn_ms = [&](const std::function<void()>& work) {
    return bench::median_ms(
        stream.cuda().handle(), [&](int) { work(); }, turn);
  };
  turn_ms(one);
  turn_ms(other);
  std::pair<double, double> means;
  for (int round = 0; round < kRounds; ++round) {
    means.first += turn_ms(one) / kRounds;
    means.second += turn_ms(other) / kRounds;
  }
  return means;
}

void print_in_turn(const std::string& name, const std::pair<double, double>& ms) {
  fmt::print("| {} | {:.4f} | {:.4f} |\n", name, ms.first, ms.second);
}

/// The products of an MLP of width D that meet its GELU.
void bench_gelu_products(const tensor::Stream& stream, const ProductBuffers& buffers, std::int64_t T,
                         std::int64_t D) {
  const std::int64_t F = 4 * D;
  const tensor::TensorView x_TD(buffers.at(0), {T, D});
  const tensor::TensorView w_FD(buffers.at(1), {F, D});
  const tensor::TensorView w_DF(buffers.at(1), {D, F});
  const tensor::TensorView b_F(buffers.at(1) + F * D, {F});  // behind the weights
  const tensor::TensorView kept_TF(buffers.at(3), {T, F});
  const tensor::TensorView result_TF(buffers.at(2), {T, F});
  const tensor::TensorView db_F(reinterpret_cast<float*>(buffers.at(1)) + F * D, {F});  // and behind that
  const std::vector<Product> products = bench::layer_products(buffers, T, D);
  const auto product = [&](const std::string& name) {
    return std::ranges::find(products, name, &Product::name)->args;
  };
  print_in_turn(fmt::format("forward {} x {} x {}", T, F, D),
                in_turn_ms(
                    stream,
                    [&] {
                      kernels::cuda::matmul(stream, product("mlp1 forward"));
                      kernels::gelu_forward(stream, {.x = result_TF, .y = kept_TF});
                    },
                    [&] {
                      kernels::mlp_gelu_forward(
                          stream,
                          {.x_TD = x_TD, .w1_FD = w_FD, .b1_F = b_F, .h_TF = result_TF, .kept_TF = kept_TF});
                    }));
  const auto pass = [&] {
    kernels::cuda::multiply_gelu_derivative(stream, kept_TF, result_TF, db_F.data<float>());
  };
  print_in_turn(
      fmt::format("gradient {} x {} x {}", T, F, D),
      in_turn_ms(
          stream,
          [&] {
            kernels::cuda::matmul(stream, product("mlp2 dx"));
            pass();
          },
          [&] {
            kernels::mlp_gelu_backward(
                stream,
                {.dy_TD = x_TD, .w2_DF = w_DF, .kept_TF = kept_TF, .du_TF = result_TF, .db1_F = db_F});
          }));
}

void run(std::int64_t T) {
  const tensor::CudaStream queue;
  const ProductBuffers buffers(queue, static_cast<std::size_t>(std::max<std::int64_t>(T, 4096)) * 4096);
  const tensor::Stream stream(queue, buffers.scratch());
  cublasLtHandle_t library = nullptr;
  kernels::cuda::check_lt(cublasLtCreate(&library), "start");
  fmt::print("{}, cuBLASLt {}, {} tokens\n", tensor::cuda_device_info().name, cublasLtGetVersion(), T);
  bench_model(stream, buffers, library, "BERT-large", T, 1024);
  bench_model(stream, buffers, library, "BERT-base", T, 768);
  bench_passes(stream, buffers, T);
  fmt::print("\n| with GELU, in turn | the library's ms | an MLP's ms |\n|---|---|---|\n");
  bench_gelu_products(stream, buffers, T, 1024);
  bench_gelu_products(stream, buffers, T, 768);
  const kernels::GemmRate rate = kernels::measure_cuda_gemm_rate(3.0);
  fmt::print("\n8192 x 4096 x 4096: {:.0f} TFLOP/s in a burst, {:.0f} sustained\n", rate.fastest * 1e-12,
             rate.sustained * 1e-12);
  cublasLtDestroy(library);
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  try {
    plenum::run(argc > 1 ? std::atol(argv[1]) : 32768);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_gpu_linear: {}\n", error.what());
    return 2;
  }
}
