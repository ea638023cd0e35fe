// Measures the cross-entropy over the vocabulary and what belongs to a loss, for one micro-batch of
// BERT-Large. Prints microseconds and, of products, operations per second and the share of what a plain
// product of a layer reaches: bench_gpu_loss [MASKED [VOCABULARY [WIDTH]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "plenum/kernels/class_loss.h"
#include "plenum/kernels/linear.h"
#include "plenum/kernels/sum.h"
#include "plenum/kernels/vocabulary_loss.h"

#include "bench/gpu/device_tensors.h"
#include "bench/gpu/timing.h"

namespace {

using namespace plenum;
using tensor::Device;
using tensor::DType;
using tensor::TensorView;

class Benchmark {
 public:
  Benchmark(std::int64_t masked, std::int64_t vocabulary, std::int64_t width)
      : M(masked),
        V(vocabulary),
        D(width),
        scratch_(std::max(kernels::vocabulary_loss_scratch_bytes(Device::Cuda),
                          kernels::linear_scratch_bytes(Device::Cuda)),
                 Device::Cuda),
        stream_(queue_, bench::bytes_of(scratch_)),
        tensors_(stream_),
        label_M_(tensors_.given(labels())),
        scale_1_(tensors_.given(std::vector<double>{1.0 / static_cast<double>(M)})) {}

  void run() {
    std::printf("M=%ld V=%ld D=%ld\n%-36s %8s %8s %8s\n", M, V, D, "", "us", "TFLOP/s", "of plain");
    measure_plain();
    measure_vocabulary_loss();
    measure_small();
  }

 private:
  std::vector<std::int32_t> labels() const {
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < M; ++i) labels.push_back(static_cast<std::int32_t>(i * 7919 % V));
    return labels;
  }

  double measure(const std::function<void(int)>& run) { return bench::median_ms(queue_.handle(), run); }
  void report(const char* name, double ms, double num_operations) {
    const double rate = num_operations / ms * 1e-9;
    if (plain_rate_ == 0) plain_rate_ = rate;
    std::printf("%-36s %8.1f %8.0f %7.1f%%\n", name, ms * 1e3, rate, 100 * rate / plain_rate_);
  }

  void measure_plain() {
    constexpr std::int64_t kRows = 32768;
    const TensorView x = tensors_.random(DType::BFloat16, {kRows, D});
    const TensorView w = tensors_.random(DType::BFloat16, {4 * D, D});
    const TensorView y = tensors_.random(DType::BFloat16, {kRows, 4 * D});
    const double ms =
        measure([&](int) { kernels::linear_forward(stream_, {.x_TD = x, .w_ED = w, .y_TE = y}); });
    report("plain product, 32768 rows", ms, 8.0 * static_cast<double>(kRows * D * D));
  }

  void measure_vocabulary_loss() {
    const TensorView h = tensors_.random(DType::BFloat16, {M, D});
    const TensorView w = tensors_.random(DType::BFloat16, {V, D}, -0.1F, 0.1F);
    const TensorView b = tensors_.random(DType::BFloat16, {V});
    const TensorView logits =
        tensors_.random(DType::BFloat16, {M, kernels::vocabulary_stride(Device::Cuda, V)});
    const TensorView lse = tensors_.random(DType::Float32, {M});
    const kernels::VocabularyLossForward forward = {.h_MD = h,
                                                    .w_VD = w,
                                                    .b_V = b,
                                                    .label_M = label_M_,
                                                    .logits_MW = logits,
                                                    .tiles_MN2 = {lse.raw(), DType::Float32, {M, 0, 2}},
                                                    .lse_M = lse,
                                                    .loss_M = tensors_.random(DType::Float32, {M}),
                                                    .prediction_M = {}};
    const kernels::VocabularyLossBackward backward = {.h_MD = h,
                                                      .w_VD = w,
                                                      .label_M = label_M_,
                                                      .lse_M = lse,
                                                      .scale_1 = scale_1_,
                                                      .logits_MW = logits,
                                                      .dh_MD = tensors_.random(DType::BFloat16, {M, D}),
                                                      .dw_VD = tensors_.random(DType::Float32, {V, D}),
                                                      .db_V = tensors_.random(DType::Float32, {V})};
    const double num_operations = 2.0 * static_cast<double>(M * V * D);
    const double forward_ms = measure([&](int) { kernels::vocabulary_loss_forward(stream_, forward); });
    // Backward overwrites its logits: without forward it would soon differentiate what is all alike.
    const double both_ms = measure([&](int) {
      kernels::vocabulary_loss_forward(stream_, forward);
      kernels::vocabulary_loss_backward(stream_, backward);
    });
    report("vocabulary loss forward", forward_ms, num_operations);
    report("vocabulary loss backward", both_ms - forward_ms, 2 * num_operations);
  }

  void measure_small() {
    constexpr std::int64_t kSequences = 128;
    const TensorView logits = tensors_.random(DType::BFloat16, {kSequences, 2});
    const TensorView label = tensors_.given(std::vector<std::int32_t>(kSequences, 1));
    const TensorView loss = tensors_.random(DType::Float32, {kSequences});
    const TensorView dlogits = tensors_.random(DType::BFloat16, {kSequences, 2});
    const TensorView losses = tensors_.random(DType::Float32, {M});
    const TensorView sum = tensors_.given(std::vector<double>{0});
    const auto report_time = [&](const char* name, const std::function<void(int)>& run) {
      std::printf("%-36s %8.1f\n", name, measure(run) * 1e3);
    };
    report_time("class loss forward", [&](int) {
      kernels::class_loss_forward(stream_, {.logits_SC = logits, .label_S = label, .loss_S = loss});
    });
    report_time("class loss backward", [&](int) {
      kernels::class_loss_backward(
          stream_, {.logits_SC = logits, .label_S = label, .scale_1 = scale_1_, .dlogits_SC = dlogits});
    });
    report_time("sum of losses", [&](int) { kernels::add_sum(stream_, {.x_N = losses, .sum_1 = sum}); });
  }

  std::int64_t M, V, D;
  tensor::CudaStream queue_;
  tensor::Arena scratch_;
  tensor::Stream stream_;
  bench::DeviceTensors tensors_;
  TensorView label_M_, scale_1_;
  double plain_rate_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int index, std::int64_t otherwise) {
    return argc > index ? std::atol(argv[index]) : otherwise;
  };
  Benchmark(argument(1, 4915), argument(2, 30522), argument(3, 1024)).run();
}
