// Every op of the table that the tests go over, at the size of a layer of BERT-base with 4,096 tokens: time,
// rates and the share of what the device can do, which is measured in the same run.
//   build/bench/bench_ops [--device cpu|cuda] [--threads N] [--seconds S] [OP ...]
// The limit of a call is the longer of two times: of its products at the rate of a large product, and of its
// arguments, each moved once, at the rate of a large copy. What fits into caches may do better than that.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "plenum/base/machine.h"
#include "plenum/kernels/gemm_rate.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_device.h"

#include "tests/ops/table/op_table.h"

namespace plenum {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "cpu";
  std::int64_t threads = 0;
  double seconds = 0.5;
  std::vector<std::string> ops;

  tensor::Device where() const { return device == "cuda" ? tensor::Device::Cuda : tensor::Device::Cpu; }
};

/// The median of the times of a call, over so many seconds; on a GPU in bursts, so that starting them does
/// not count.
double seconds_of(const tensor::Stream& stream, const std::function<void()>& call, double seconds) {
  const int burst = stream.device() == tensor::Device::Cuda ? 20 : 1;
  call();  // chooses its algorithm
  stream.wait();
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < burst; ++i) call();
    stream.wait();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count() / burst);
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds);
  std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
  return times[times.size() / 2];
}

/// Bytes per second, read and written, of a copy that no cache holds.
double measure_copy_rate(const ops::OpContext& context, double seconds) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  constexpr std::size_t kParts = 256;
  const tensor::Stream& stream = context.stream();
  tensor::MemoryLayout layout;
  const tensor::Block from = layout.add("from", tensor::DType::Byte, {kBytes});
  const tensor::Block to = layout.add("to", tensor::DType::Byte, {kBytes});
  const tensor::Arena arena(layout, stream.device());
  tensor::set_zero(stream, arena.view(from));
  const auto copy = [&] {
    if (stream.device() == tensor::Device::Cuda)
      return tensor::copy(stream, arena.view(from), arena.view(to));
    stream.pool().run(kParts, [&](std::size_t part, std::size_t) {
      const std::size_t offset = part * (kBytes / kParts);
      std::memcpy(arena.view(to).data<std::byte>() + offset, arena.view(from).data<std::byte>() + offset,
                  kBytes / kParts);
    });
  };
  return 2.0 * kBytes / seconds_of(stream, copy, seconds);
}

ops::OpContext context_of(const Options& options, std::size_t scratch_bytes) {
  scratch_bytes = std::max<std::size_t>(scratch_bytes, 1);
  if (options.where() == tensor::Device::Cuda) return ops::OpContext(tensor::Device::Cuda, scratch_bytes);
  return ops::OpContext(static_cast<std::size_t>(options.threads), scratch_bytes);
}

double measure_product_rate(const Options& options) {
  if (options.where() == tensor::Device::Cuda) return kernels::measure_cuda_gemm_rate(1.0).sustained;
  base::ThreadPool pool(static_cast<std::size_t>(options.threads));
  return kernels::measure_gemm_rate(pool, 1.0).sustained;
}

bool is_asked_for(const Options& options, const ops::OpDescriptor& op) {
  return options.ops.empty() || std::ranges::find(options.ops, op.name) != options.ops.end();
}

void run(const Options& options) {
  const double product_rate = measure_product_rate(options);
  const double copy_rate = measure_copy_rate(context_of(options, 1), options.seconds);
  fmt::print("{}: products {:.0f} GFLOP/s, copies {:.0f} GB/s\n", options.device, product_rate * 1e-9,
             copy_rate * 1e-9);
  fmt::print("{:26} {:36} {:>10} {:>10} {:>10} {:>6}\n", "function", "shape", "us", "GFLOP/s", "GB/s",
             "share");
  for (const ops::OpDescriptor& op : ops::op_table()) {
    const bool runs_here = std::ranges::find(op.devices, options.where()) != op.devices.end();
    if (!runs_here || !is_asked_for(options, op)) continue;
    const std::unique_ptr<ops::OpCase> op_case = op.typical.make(options.where());
    const ops::OpContext context = context_of(options, op_case->scratch_bytes());
    ops::Arguments arguments(context);
    for (const ops::OpCall& call : op_case->calls(arguments)) {
      const double seconds = seconds_of(
          context.stream(), [&] { call.run(context.stream()); }, options.seconds);
      const double limit = std::max(call.flops / product_rate, call.bytes / copy_rate);
      fmt::print("{:26} {:36.36} {:10.1f} {:10.1f} {:10.1f} {:5.0f}%\n", call.function, op.typical.name,
                 seconds * 1e6, call.flops / seconds * 1e-9, call.bytes / seconds * 1e-9,
                 100 * limit / seconds);
    }
  }
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  options.threads = static_cast<std::int64_t>(plenum::base::usable_cores());
  CLI::App app("Times every op");
  app.add_option("--device", options.device)->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--threads", options.threads, "Of the CPU");
  app.add_option("--seconds", options.seconds, "For each function");
  app.add_option("OP", options.ops, "Only these");
  CLI11_PARSE(app, argc, argv);
  try {
    plenum::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_ops: {}\n", error.what());
    return 2;
  }
  return 0;
}
