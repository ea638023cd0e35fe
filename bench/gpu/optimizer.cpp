// Measures the step of the optimizers on all parameters of BERT-Large. Prints milliseconds, bytes per second
// (each input read once, each output written once) and the share of what a copy reaches. Muon and SOAP update
// the matrices of layers alone and are bound by products: of them the time says what there is to say.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "plenum/kernels/linear.h"
#include "plenum/kernels/muon_step.h"
#include "plenum/kernels/optimizer_step.h"
#include "plenum/kernels/soap_step.h"

#include "bench/gpu/device_tensors.h"
#include "bench/gpu/timing.h"

namespace {

using namespace plenum;
using tensor::Device;
using tensor::DType;
using tensor::TensorView;

/// The tensors of BERT-Large, each from a multiple of 16 elements on.
std::vector<kernels::FlatRange> bert_large() {
  constexpr std::int64_t D = 1024;
  constexpr std::int64_t V = 30522;
  std::vector<kernels::FlatRange> ranges;
  const auto add = [&](std::int64_t size, bool is_decayed) {
    const std::int64_t begin = ranges.empty() ? 0 : (ranges.back().end + 15) / 16 * 16;
    ranges.push_back({begin, begin + size, is_decayed});
  };
  const auto add_linear = [&](std::int64_t inputs, std::int64_t outputs) {
    add(inputs * outputs, true);
    add(outputs, false);
  };
  const auto add_norm = [&] {
    add(D, false);
    add(D, false);
  };
  for (const std::int64_t rows : {V, std::int64_t{512}, std::int64_t{2}}) add(rows * D, true);
  add_norm();
  for (int layer = 0; layer < 24; ++layer) {
    for (int i = 0; i < 4; ++i) add_linear(D, D);
    add_norm();
    add_linear(D, 4 * D);
    add_linear(4 * D, D);
    add_norm();
  }
  add_linear(D, D);
  add_linear(D, D);
  add_norm();
  add(V, false);
  add_linear(D, 2);
  return ranges;
}

/// The matrices of its layers: a map of all layers is a group.
std::vector<kernels::FlatMatrices> layer_matrices(const std::vector<kernels::FlatRange>& ranges) {
  constexpr std::int64_t D = 1024;
  constexpr std::size_t kFirst = 5;     // behind the embedding
  constexpr std::size_t kOfLayer = 16;  // ranges
  const std::int64_t stride = ranges[kFirst + kOfLayer].begin - ranges[kFirst].begin;
  std::vector<kernels::FlatMatrices> groups;
  const auto add = [&](std::size_t range, std::int64_t rows, std::int64_t columns) {
    groups.push_back({ranges[kFirst + range].begin, stride, 24, rows, columns, true});
  };
  for (const std::size_t range : {0U, 2U, 4U, 6U}) add(range, D, D);
  add(10, 4 * D, D);
  add(12, D, 4 * D);
  return groups;
}

class Benchmark {
 public:
  Benchmark()
      : ranges_(bert_large()),
        N(ranges_.back().end),
        scratch_(std::max(kernels::optimizer_scratch_bytes(Device::Cuda, N,
                                                           static_cast<std::int64_t>(ranges_.size())),
                          kernels::linear_scratch_bytes(Device::Cuda)),
                 Device::Cuda),
        stream_(queue_, bench::bytes_of(scratch_)),
        tensors_(stream_) {}

  void run() {
    const std::vector<std::int64_t> chunks = kernels::optimizer_chunks(ranges_);
    std::vector<double> scalars(kernels::kNumStepScalars);
    scalars[kernels::index_of(kernels::StepScalar::LearningRate)] = 1e-6;
    scalars[kernels::index_of(kernels::StepScalar::GradientScale)] = 1;
    scalars[kernels::index_of(kernels::StepScalar::NumUpdates)] = 10;
    const TensorView scalars_C = tensors_.given(scalars);
    const TensorView gradient = tensors_.random(DType::Float32, {N}, -1e-3F, 1e-3F);
    const kernels::AdamStep step = {
        .ranges = ranges_,
        .work = {.chunks_C4 = tensors_.given(chunks, {static_cast<std::int64_t>(chunks.size() / 4), 4})},
        .gradient_N = gradient,
        .weight_N = tensors_.random(DType::Float32, {N}, -0.05F, 0.05F),
        .first_moment_N = tensors_.random(DType::Float32, {N}, -1e-3F, 1e-3F),
        .second_moment_N = tensors_.random(DType::Float32, {N}, 0, 1e-6F),
        .compute_weight_N = tensors_.random(DType::BFloat16, {N}),
        .scalars_C = scalars_C};
    std::printf("%ld parameters, %zu tensors\n%-36s %8s %8s %8s\n", N, ranges_.size(), "", "ms", "TB/s",
                "of copy");
    const TensorView copied = tensors_.random(DType::Float32, {N});
    report("copy", 8, [&](int) { tensor::copy(stream_, gradient, copied); });
    report("squares, decide step", 4, [&](int) {
      kernels::add_gradient_squares(stream_, {.gradient_N = gradient, .scalars_C = scalars_C});
      kernels::decide_step(stream_, {.scalars_C = scalars_C});
    });
    report("Adam", 30, [&](int) { kernels::adam_step(stream_, step); });
    report("LAMB", 42, [&](int) { kernels::lamb_step(stream_, step); });
    run_muon(step);
    run_soap(step);
  }

 private:
  void run_muon(const kernels::AdamStep& step) {
    const std::vector<kernels::FlatMatrices> groups = layer_matrices(ranges_);
    const std::vector<std::int64_t> chunks = kernels::matrix_chunks(groups);
    const kernels::MuonStep muon = {
        .groups = groups,
        .chunks_C8 = tensors_.given(chunks, {static_cast<std::int64_t>(chunks.size() / 8), 8}),
        .gradient_N = step.gradient_N,
        .weight_N = step.weight_N,
        .moment_N = step.first_moment_N,
        .iterate_N = step.second_moment_N,
        .compute_weight_N = step.compute_weight_N,
        .room = tensors_.random(DType::BFloat16, {workspace::newton_schulz_room(Device::Cuda, groups)}),
        .scalars_C = step.scalars_C};
    report("Muon, layers", 0, [&](int) { kernels::muon_step(stream_, muon); });
  }

  void run_soap(const kernels::AdamStep& step) {
    const std::vector<kernels::FlatMatrices> groups = layer_matrices(ranges_);
    kernels::SoapStep soap = {.groups = groups,
                              .gradient_N = step.gradient_N,
                              .weight_N = step.weight_N,
                              .first_moment_N = step.first_moment_N,
                              .second_moment_N = step.second_moment_N,
                              .compute_weight_N = step.compute_weight_N,
                              .scalars_C = step.scalars_C};
    soap.state = tensors_.random(DType::Float32, {workspace::soap_state_elements(groups, soap.limit)});
    soap.room =
        tensors_.random(DType::Float32, {workspace::soap_room_elements(Device::Cuda, groups, soap.limit)});
    report("SOAP, layers", 0, [&](int) { kernels::soap_step(stream_, soap); });
    soap.num_iterations = 1;
    report("SOAP, layers, bases refreshed", 0, [&](int) { kernels::soap_step(stream_, soap); });
  }

  void report(const char* name, double bytes_of_element, const std::function<void(int)>& run) {
    const double ms = bench::median_ms(queue_.handle(), run, {.num_warm_up = 5, .runs_of_sample = 2});
    const double rate = bytes_of_element * static_cast<double>(N) / ms * 1e-9;
    if (copy_rate_ == 0) copy_rate_ = rate;
    std::printf("%-36s %8.3f %8.2f %7.1f%%\n", name, ms, rate, 100 * rate / copy_rate_);
  }

  std::vector<kernels::FlatRange> ranges_;
  std::int64_t N;
  tensor::CudaStream queue_;
  tensor::Arena scratch_;
  tensor::Stream stream_;
  bench::DeviceTensors tensors_;
  double copy_rate_ = 0;
};

}  // namespace

int main() {
  Benchmark().run();
}
