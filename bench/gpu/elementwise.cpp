// Measures the kernels that memory limits, on one micro-batch of BERT-Large: layer norm, embedding, rows,
// activations. Prints microseconds, bytes per second (each input read once, each output written once) and the
// share of what a copy reaches: bench_gpu_elementwise [ROWS [WIDTH [PART_OF_NAME]]]
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plenum/kernels/activation.h"
#include "plenum/kernels/convert.h"
#include "plenum/kernels/embedding.h"
#include "plenum/kernels/layer_norm.h"
#include "plenum/kernels/rows.h"
#include "plenum/tensor/arena.h"
#include "plenum/tensor/copy.h"

#include "bench/gpu/device_tensors.h"
#include "bench/gpu/timing.h"

namespace {

using namespace plenum;
using bench::DeviceTensors;
using tensor::Device;
using tensor::DType;
using tensor::TensorView;

constexpr int kSets = 2;  // of buffers, taken by turns
constexpr std::int64_t kVocabulary = 30522;
constexpr std::int64_t kPositions = 512;

/// The rows of a micro-batch of sequences of the length `kPositions`.
struct Rows {
  std::vector<std::int64_t> samples;
  std::vector<std::int32_t> words, positions, segments;

  explicit Rows(std::int64_t count) {
    for (std::int64_t row = 0; row < count; ++row) {
      samples.push_back(row / kPositions);
      positions.push_back(static_cast<std::int32_t>(row % kPositions));
      segments.push_back(row % kPositions < kPositions / 2 ? 0 : 1);
      // Words of a text: the k-th most frequent one k times as rare as the first.
      const double uniform = static_cast<double>(row * 7919 % count) / static_cast<double>(count);
      words.push_back(static_cast<std::int32_t>(std::pow(static_cast<double>(kVocabulary), uniform)) - 1);
    }
  }
};

kernels::RowGroups groups_of(const std::vector<std::int32_t>& entries, DeviceTensors& tensors) {
  std::map<std::int32_t, std::vector<std::int32_t>> rows_of;
  for (std::size_t row = 0; row < entries.size(); ++row)
    rows_of[entries[row]].push_back(static_cast<std::int32_t>(row));
  std::vector<std::int32_t> groups, rows;
  std::vector<std::int32_t> starts = {0};
  for (const auto& [entry, of_entry] : rows_of) {
    groups.push_back(entry);
    rows.insert(rows.end(), of_entry.begin(), of_entry.end());
    starts.push_back(static_cast<std::int32_t>(rows.size()));
  }
  return {.entry_G = tensors.given(groups), .start_G = tensors.given(starts), .row_R = tensors.given(rows)};
}

class Benchmark {
 public:
  Benchmark(std::int64_t rows, std::int64_t width, const std::string& part_of_name)
      : T(rows),
        D(width),
        part_of_name_(part_of_name),
        scratch_(kernels::embedding_scratch_bytes(Device::Cuda, T, D), Device::Cuda),
        stream_(queue_, bench::bytes_of(scratch_)),
        tensors_(stream_),
        rows_(rows),
        identities_{.sample_T = tensors_.given(rows_.samples), .position_T = tensors_.given(rows_.positions)},
        gamma_(tensors_.random(DType::Float32, {D})),
        beta_(tensors_.random(DType::Float32, {D})),
        mean_(tensors_.random(DType::Float32, {T})),
        deviation_(tensors_.random(DType::Float32, {T})) {
    for (auto& set : sets_) {
      for (TensorView& tensor : set) tensor = tensors_.random(DType::BFloat16, {T, D});
    }
  }

  void run() {
    std::printf("T=%ld D=%ld\n%-36s %8s %8s %8s\n", T, D, "", "us", "TB/s", "of copy");
    measure_copy();
    measure_layer_norm();
    measure_embedding();
    measure_rows();
    measure_activations();
  }

 private:
  void report(const std::string& name, double num_bytes, const std::function<void(int)>& run) {
    if (copy_rate_ > 0 && name.find(part_of_name_) == std::string::npos) return;
    const double ms = bench::median_ms(queue_.handle(), run);
    const double rate = num_bytes / ms * 1e-9;
    if (copy_rate_ == 0) copy_rate_ = rate;
    std::printf("%-36s %8.1f %8.2f %7.1f%%\n", name.c_str(), ms * 1e3, rate, 100 * rate / copy_rate_);
  }
  /// Bytes of `count` tensors of rows.
  double row_bytes(double count) const { return count * static_cast<double>(T * D) * 2; }
  std::array<TensorView, 4>& set(int number) { return sets_[static_cast<std::size_t>(number % kSets)]; }

  kernels::Dropout dropout(std::uint32_t threshold) const {
    return {.threshold = threshold, .key = base::RandomFunction(1, base::Purpose::Dropout).key()};
  }

  void measure_copy() {
    const TensorView from = tensors_.random(DType::Float32, {std::int64_t{64} << 20});
    const TensorView to = tensors_.random(DType::Float32, {std::int64_t{64} << 20});
    report("copy", 2.0 * static_cast<double>(from.num_bytes()),
           [&](int) { tensor::copy(stream_, from, to); });
  }

  void measure_layer_norm() {
    const TensorView dgamma = tensors_.random(DType::Float32, {D});
    const TensorView dbeta = tensors_.random(DType::Float32, {D});
    for (const std::uint32_t threshold : {26U, 0U}) {
      const std::string with = threshold > 0 ? ", dropout" : "";
      report("layer norm forward" + with, row_bytes(4), [&](int number) {
        const auto& [x, residual, z, y] = set(number);
        kernels::layer_norm_forward(stream_, {.x_TD = x,
                                              .residual_TD = residual,
                                              .gamma_D = gamma_,
                                              .beta_D = beta_,
                                              .dropout = dropout(threshold),
                                              .rows = identities_,
                                              .z_TD = z,
                                              .y_TD = y,
                                              .mean_T = mean_,
                                              .inverse_deviation_T = deviation_});
      });
      report("layer norm backward" + with, row_bytes(threshold > 0 ? 4 : 3), [&](int number) {
        const auto& [dy, z, dz, dx] = set(number);
        kernels::layer_norm_backward(stream_, {.dy_TD = dy,
                                               .z_TD = z,
                                               .mean_T = mean_,
                                               .inverse_deviation_T = deviation_,
                                               .gamma_D = gamma_,
                                               .dropout = dropout(threshold),
                                               .rows = identities_,
                                               .dz_TD = dz,
                                               .dx_TD = threshold > 0 ? dx : TensorView(),
                                               .dgamma_D = dgamma,
                                               .dbeta_D = dbeta});
      });
    }
  }

  void measure_embedding() {
    const TensorView id_T = tensors_.given(rows_.words);
    const TensorView segment_T = tensors_.given(rows_.segments);
    const TensorView word_VD = tensors_.random(DType::BFloat16, {kVocabulary, D});
    const TensorView position_PD = tensors_.random(DType::BFloat16, {kPositions, D});
    const TensorView segment_GD = tensors_.random(DType::BFloat16, {2, D});
    report("embedding forward, dropout", row_bytes(3), [&](int number) {
      kernels::embedding_forward(stream_, {.id_T = id_T,
                                           .position_T = identities_.position_T,
                                           .segment_T = segment_T,
                                           .word_VD = word_VD,
                                           .position_PD = position_PD,
                                           .segment_GD = segment_GD,
                                           .gamma_D = gamma_,
                                           .beta_D = beta_,
                                           .dropout = dropout(26),
                                           .rows = identities_,
                                           .z_TD = set(number)[0],
                                           .y_TD = set(number)[1],
                                           .mean_T = mean_,
                                           .inverse_deviation_T = deviation_});
    });
    const kernels::RowGroups by_word = groups_of(rows_.words, tensors_);
    const TensorView dgamma = tensors_.random(DType::Float32, {D});
    const TensorView dbeta = tensors_.random(DType::Float32, {D});
    // dz is read once for each table; entries of words are read and written.
    const double num_bytes =
        row_bytes(6) + 8 * static_cast<double>((by_word.num_groups() + kPositions + 2) * D);
    const kernels::EmbeddingBackward backward = {
        .dy_TD = {},
        .z_TD = {},
        .mean_T = mean_,
        .inverse_deviation_T = deviation_,
        .gamma_D = gamma_,
        .dropout = dropout(26),
        .rows = identities_,
        .by_word = by_word,
        .by_position = groups_of(rows_.positions, tensors_),
        .by_segment = groups_of(rows_.segments, tensors_),
        .dz_TD = {},
        .dword_VD = tensors_.random(DType::Float32, {kVocabulary, D}),
        .dposition_PD = tensors_.random(DType::Float32, {kPositions, D}),
        .dsegment_GD = tensors_.random(DType::Float32, {2, D}),
        .dgamma_D = dgamma,
        .dbeta_D = dbeta};
    report("embedding backward, dropout", num_bytes, [&](int number) {
      kernels::EmbeddingBackward args = backward;
      args.dy_TD = set(number)[0];
      args.z_TD = set(number)[1];
      args.dz_TD = set(number)[2];
      kernels::embedding_backward(stream_, args);
    });
  }

  void measure_rows() {
    const std::int64_t M = T * 3 / 20;
    std::vector<std::int32_t> index;
    for (std::int64_t i = 0; i < M; ++i) index.push_back(static_cast<std::int32_t>(i * 20 / 3));
    const TensorView index_M = tensors_.given(index);
    const TensorView y_MD = tensors_.random(DType::BFloat16, {M, D});
    const double bytes_of_rows = static_cast<double>(M * D) * 2;
    report("gather rows forward", 2 * bytes_of_rows, [&](int number) {
      kernels::gather_rows_forward(stream_, {.x_TD = set(number)[0], .index_M = index_M, .y_MD = y_MD});
    });
    report("gather rows backward", 3 * bytes_of_rows, [&](int number) {
      kernels::gather_rows_backward(stream_, {.dy_MD = y_MD, .index_M = index_M, .dx_TD = set(number)[0]});
    });
  }

  void measure_activations() {
    const TensorView x = tensors_.random(DType::BFloat16, {T, 4 * D});
    const TensorView y = tensors_.random(DType::BFloat16, {T, 4 * D});
    const TensorView dx = tensors_.random(DType::BFloat16, {T, 4 * D});
    const TensorView master = tensors_.random(DType::Float32, {T, D});
    report("gelu forward", row_bytes(8), [&](int) { kernels::gelu_forward(stream_, {.x = x, .y = y}); });
    report("gelu backward", row_bytes(12),
           [&](int) { kernels::gelu_backward(stream_, {.x = x, .dy = y, .dx = dx}); });
    report("tanh forward", row_bytes(8), [&](int) { kernels::tanh_forward(stream_, {.x = x, .y = y}); });
    report("tanh backward", row_bytes(12),
           [&](int) { kernels::tanh_backward(stream_, {.y = x, .dy = y, .dx = dx}); });
    report("round fp32 to bf16", row_bytes(3),
           [&](int number) { kernels::round_to_compute(stream_, {.x_N = master, .y_N = set(number)[0]}); });
  }

  std::int64_t T;
  std::int64_t D;
  std::string part_of_name_;
  tensor::CudaStream queue_;
  tensor::Arena scratch_;
  tensor::Stream stream_;
  DeviceTensors tensors_;
  Rows rows_;
  kernels::RowIdentities identities_;
  TensorView gamma_, beta_, mean_, deviation_;
  std::array<std::array<TensorView, 4>, kSets> sets_;
  double copy_rate_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 1 ? std::atol(argv[1]) : 32768;
  const std::int64_t width = argc > 2 ? std::atol(argv[2]) : 1024;
  Benchmark(rows, width, argc > 3 ? argv[3] : "").run();
}
