// What each optimisation adds to the speed of an encoder layer: times forward and backward padded and with
// every op by itself, then with one optimisation after another, in turns, and prints a line of JSON with the
// milliseconds of each form. All forms without padding must give the same results to rounding.
//   build/bench/bench_ablation --lengths tests/golden/wikipedia_512_histogram.txt --model bert-base
//   build-cuda/bench/bench_ablation ... --model bert-large --tokens 32768 --device cuda
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/machine.h"
#include "plenum/data/batches/histogram_file.h"

#include "bench/ablation_layer.h"

namespace plenum {
namespace {

using bench::AblationLayer;
using bench::LayerForm;
using bench::LayerRows;

struct Options {
  std::string lengths;
  std::string model = "bert-base";
  std::int64_t tokens = 4096;
  std::string device = "cpu";
  std::size_t threads = base::usable_cores();
  int rounds = 7;
  int repeats = 1;  ///< of a form in a round, one behind the other
};

/// The names of forms, by how many optimisations they have.
constexpr std::array<const char*, bench::kNumOptimisations + 1> kForms = {
    "padded",           "unpadded",       "attention at once", "GELU in products",
    "dropout in norms", "gradients once", "dropout kept"};

/// Lengths as often as the histogram has them, in no order; the last is cut so that they are `tokens`.
std::vector<std::int32_t> draw_lengths(const packing::LengthHistogram& histogram, std::int64_t tokens) {
  std::vector<std::int32_t> lengths;
  constexpr double kGolden = 0.6180339887498949;
  for (std::int64_t left = tokens; left > 0; left -= lengths.back()) {
    const double place = std::fmod(kGolden * static_cast<double>(lengths.size() + 1), 1.0);
    double before = place * static_cast<double>(histogram.num_sequences());
    std::size_t length = 0;
    while (before >= static_cast<double>(histogram.counts[length])) {
      before -= static_cast<double>(histogram.counts[length]);
      ++length;
    }
    lengths.push_back(
        static_cast<std::int32_t>(std::min<std::int64_t>(static_cast<std::int64_t>(length), left)));
  }
  return lengths;
}

/// Where a form runs.
class Lane {
 public:
  Lane(const Options& options, std::size_t scratch_bytes) {
    const bool is_gpu = options.device == "cuda";
    const std::size_t num_scratches = is_gpu ? 1 : options.threads;
    constexpr std::size_t kLine = 64;
    const std::size_t bytes = num_scratches * ((scratch_bytes + kLine - 1) / kLine * kLine);
    arena_ = std::make_unique<tensor::Arena>(bytes, is_gpu ? tensor::Device::Cuda : tensor::Device::Cpu);
    const std::span<std::byte> scratch =
        arena_->view({.offset = 0, .dtype = tensor::DType::Byte, .shape = {static_cast<std::int64_t>(bytes)}})
            .span<std::byte>();
    if (is_gpu) {
      stream_.emplace(queue_.emplace(), scratch);
    } else {
      stream_.emplace(pool_.emplace(options.threads), scratch);
    }
  }
  const tensor::Stream& stream() const { return *stream_; }

 private:
  std::unique_ptr<tensor::Arena> arena_;
  std::optional<base::ThreadPool> pool_;
  std::optional<tensor::CudaStream> queue_;
  std::optional<tensor::Stream> stream_;
};

/// The greatest difference of any result, as a share of the greatest value.
double greatest_difference(const AblationLayer& layer, LayerForm form, LayerForm reference) {
  const auto expected = layer.results(reference);
  const auto found = layer.results(form);
  double greatest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double size = 0, difference = 0;
    for (std::size_t k = 0; k < expected[i].second.size(); ++k) {
      const double value = expected[i].second[k];
      size = std::max(size, std::abs(value));
      difference = std::max(difference, std::abs(value - double{found[i].second[k]}));
    }
    base::require(std::isfinite(size) && size > 0, "{} has no values", expected[i].first);
    greatest = std::max(greatest, difference / size);
  }
  return greatest;
}

double milliseconds(const AblationLayer& layer, LayerForm form, const tensor::Stream& stream, int repeats) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    layer.forward(form);
    layer.backward(form);
  }
  stream.wait();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return took.count() / repeats;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const Options& options) {
  const describe::ModelConfig model = describe::preset(options.model);
  const packing::LengthHistogram histogram =
      data::read_histogram_file(options.lengths, packing::HistogramText::Form::Histogram);
  LayerRows unpadded;
  LayerRows padded;
  for (const std::int32_t length : draw_lengths(histogram, options.tokens)) {
    const auto sample = static_cast<std::int64_t>(unpadded.starts.size());
    unpadded.add(length, sample);
    padded.add(static_cast<std::int32_t>(histogram.longest()), sample);
  }
  const bool is_gpu = options.device == "cuda";
  const Lane lane(options, AblationLayer::scratch_bytes(is_gpu ? tensor::Device::Cuda : tensor::Device::Cpu,
                                                        model, padded.num_rows, histogram.longest()));
  const AblationLayer with_padding(lane.stream(), model, padded);
  const AblationLayer without(lane.stream(), model, unpadded);
  const std::size_t num_forms = is_gpu ? kForms.size() : kForms.size() - 1;  // a CPU keeps no dropout
  const LayerForm last{num_forms - 1};
  double difference = 0;
  for (std::size_t form = 1; form + 1 < num_forms; ++form)
    difference = std::max(difference, greatest_difference(without, {form}, last));
  base::require(difference < (is_gpu ? 0.05 : 1e-4), "forms differ in their results by {}", difference);

  std::vector<std::vector<double>> times(num_forms);
  for (int round = -1; round < options.rounds; ++round) {
    for (std::size_t form = 0; form < num_forms; ++form) {
      const double ms =
          milliseconds(form == 0 ? with_padding : without, {form}, lane.stream(), options.repeats);
      if (round >= 0) times[form].push_back(ms);
    }
  }
  nlohmann::json line = {{"model", options.model},
                         {"tokens", unpadded.num_rows},
                         {"padded_rows", padded.num_rows},
                         {"sequences", unpadded.starts.size()},
                         {"greatest_difference", difference}};
  for (std::size_t form = 0; form < num_forms; ++form)
    line["forms"].push_back({{"form", kForms[form]}, {"ms", median(times[form])}});
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  CLI::App app("Times an encoder layer with one optimisation after another");
  app.add_option("--lengths", options.lengths, "Histogram of lengths: how many of 1, 2, ... tokens")
      ->required();
  app.add_option("--model", options.model);
  app.add_option("--tokens", options.tokens, "Of the micro-batch, padding left out")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", options.device)->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    plenum::measure(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_ablation: {}\n", error.what());
    return 2;
  }
  return 0;
}
