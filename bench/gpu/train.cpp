// Trains a BERT on a GPU with the loader of `plenum train`: synthetic sequences of given lengths, packed,
// masked and laid out on a thread of their own while the step before runs. Its last line is a JSON object.
//
//   bench_gpu_train --lengths HISTOGRAM --model bert-large --steps 200
//   bench_gpu_train --data DATASET --model bert-large --steps 200
//
// Sequences of --data are those of a dataset that plenum prepare made.
// With --kernels a few steps more run after those, and tables say what the GPU did in them and when it did
// nothing.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/batch/micro_batch.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/dataset_sequences.h"
#include "plenum/data/batches/histogram_file.h"
#include "plenum/data/batches/prefetch.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/kernels/gemm_rate.h"
#include "plenum/model/initialise.h"
#include "plenum/schedule/generate/single.h"
#include "plenum/tensor/cuda_check.h"
#include "plenum/tensor/cuda_device.h"
#include "plenum/train/replicas.h"

#include "bench/gpu/profile/copy_rate.h"
#include "bench/gpu/profile/idle_table.h"
#include "bench/gpu/profile/kernel_records.h"
#include "bench/gpu/profile/kernel_table.h"
#include "bench/gpu/profile/product_calls.h"
#include "tests/support/synthetic_sequences.h"

namespace plenum {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::uint64_t kWarmUpSteps = 20;
constexpr std::uint64_t kRecordedSteps = 10;
/// In which the learning rate grows. Begun at its full rate, BERT learns nothing from random tokens, and its
/// loss leaps now and then.
constexpr double kGrowingSteps = 60;

struct Options {
  std::string lengths;
  std::string data;
  std::string model = "bert-large";
  std::string layout = "unpadded";
  std::string order = "packs";
  std::string device = "cuda";
  std::string losses;
  std::string drawn_lengths;
  std::uint64_t steps = 200;
  std::int64_t tokens = 32768;
  double hidden_dropout = 0.1;
  double attention_dropout = 0;
  double learning_rate = 1e-4;
  bool plain = false;
  bool kernels = false;

  /// A recorded pass does not say what it multiplies.
  bool is_plain() const { return plain || kernels; }
};

std::size_t used_bytes() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  tensor::check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "ask the GPU for its memory");
  return total_bytes - free_bytes;
}

data::Layout layout_of(const std::string& name) {
  if (name == "padded") return data::Layout::Padded;
  if (name == "packed") return data::Layout::Packed;
  return data::Layout::Unpadded;
}

void write_json(const std::string& path, const nlohmann::json& value) {
  if (!path.empty()) std::ofstream(path) << value.dump() << "\n";
}

/// What is trained on: sequences of a dataset, or drawn ones of given lengths.
class Sequences {
 public:
  Sequences(const Options& options, std::int64_t vocabulary) {
    if (!options.data.empty()) {
      dataset_.emplace(options.data);
      base::require(static_cast<std::int64_t>(dataset_->description().vocabulary_size) <= vocabulary,
                    "{} has a larger vocabulary than {}, which has {} tokens", options.data, options.model,
                    vocabulary);
      source_ = std::make_unique<data::DatasetSequences>(*dataset_, data::Split::Train);
    } else {
      source_ = std::make_unique<test::SyntheticSequences>(
          data::read_histogram_file(options.lengths, packing::HistogramText::Form::Histogram),
          test::SyntheticText{.vocabulary = vocabulary, .has_next_sentence = true}, kSeed);
    }
  }
  const data::SequenceSource& source() const { return *source_; }

 private:
  std::optional<data::Dataset> dataset_;
  std::unique_ptr<data::SequenceSource> source_;
};

std::int64_t rows_of(const batch::StepBatch& batch) {
  std::int64_t rows = 0;
  for (const batch::MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.num_rows;
  return rows;
}

std::vector<std::int32_t> lengths_of(const batch::StepBatch& batch) {
  std::vector<std::int32_t> lengths;
  for (const batch::MicroBatch& micro_batch : batch.micro_batches) {
    lengths.insert(lengths.end(), micro_batch.lengths.begin(), micro_batch.lengths.end());
  }
  return lengths;
}

double learning_rate(const Options& options, std::uint64_t step) {
  return options.learning_rate * std::min(1.0, static_cast<double>(step + 1) / kGrowingSteps);
}

/// Runs a few steps from `first_step` on and returns the tables of their kernels and of the time between.
std::string record_kernels(train::Replicas& replicas, data::Prefetch& prefetch, const Options& options,
                           std::uint64_t first_step, bench::RecordedSteps steps) {
  steps.bytes_per_second = bench::measure_copy_rate();
  steps.num_steps = kRecordedSteps;
  bench::begin_kernel_records();
  bench::begin_product_calls();
  for (std::uint64_t step = first_step; step < first_step + kRecordedSteps; ++step) {
    const std::vector<batch::StepBatch> batch = prefetch.take();
    replicas.begin_step(batch, {.learning_rate = learning_rate(options, step)});
    if (step > first_step) replicas.end_step();
    steps.work += batch.front().global;
    steps.num_rows += rows_of(batch.front());
  }
  const std::vector<bench::ProductCall> calls = bench::end_product_calls();
  const std::vector<bench::KernelRecord> records = bench::end_kernel_records();
  return bench::kernel_table(records, calls, steps) + bench::idle_table(records, steps.num_steps);
}

/// What has been reached, for whoever waits.
void say(const char* what) {
  static const auto begin = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(stderr, "{:6.1f} s: {}\n", seconds, what);
}

data::TrainingDataOptions data_options(const Options& options) {
  data::TrainingDataOptions data;
  data.layout = layout_of(options.layout);
  data.order_choice = options.order == "packs" ? data::OrderChoice::Packs : data::OrderChoice::Sequences;
  data.global_batch = fmt::format("{}tok", options.tokens);
  data.micro_batch_tokens = options.tokens;
  return data;
}

/// What came of the steps. Work and time are without those that warm up.
struct Trained {
  batch::Work work;
  std::int64_t rows = 0;
  double seconds = 0;
  std::vector<double> losses;  ///< of masked tokens
  double next_sentence_loss = 0;
  std::vector<std::vector<std::int32_t>> drawn_lengths;  ///< of each step
};

Trained run_steps(train::Replicas& replicas, data::Prefetch& prefetch, const Options& options) {
  Trained trained;
  const auto wait_for_all_but = [&](std::size_t most) {
    while (replicas.num_under_way() > most) {
      const pipeline::StepOutcome outcome = replicas.end_step().outcome;
      trained.losses.push_back(outcome.losses[0]);
      trained.next_sentence_loss = outcome.losses[1];
    }
  };
  auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t step = 0; step < options.steps + kWarmUpSteps; ++step) {
    if (step == kWarmUpSteps) {
      wait_for_all_but(0);
      begin = std::chrono::steady_clock::now();
    }
    const std::vector<batch::StepBatch> batch = prefetch.take();
    replicas.begin_step(batch, {.learning_rate = learning_rate(options, step)});
    if (step == 0) {
      say("the first step is asked for");
      wait_for_all_but(0);
      say("the first step is done");
    }
    wait_for_all_but(1);
    if (step < kWarmUpSteps) continue;
    trained.work += batch.front().global;
    trained.rows += rows_of(batch.front());
    trained.drawn_lengths.push_back(lengths_of(batch.front()));
  }
  wait_for_all_but(0);
  trained.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return trained;
}

/// Bytes of the GPU, or of the plan.
struct Memory {
  std::size_t planned = 0;
  std::size_t before = 0;
  std::size_t peak = 0;
};

nlohmann::json report(const Options& options, const Trained& trained, const Memory& memory, double flops,
                      const kernels::GemmRate& product) {
  const auto tokens = static_cast<double>(trained.work.tokens);
  const auto steps = static_cast<double>(options.steps);
  return {{"model", options.model},
          {"layout", options.layout},
          {"order", options.order},
          {"attention_dropout", options.attention_dropout},
          {"recorded", !options.is_plain()},
          {"steps", options.steps},
          {"tokens_per_second", tokens / trained.seconds},
          {"ms_per_step", trained.seconds * 1e3 / steps},
          {"tokens_per_step", tokens / steps},
          {"filled", tokens / static_cast<double>(trained.rows)},
          {"useful_tflops", flops / trained.seconds * 1e-12},
          {"product_tflops", product.fastest * 1e-12},
          {"sustained_product_tflops", product.sustained * 1e-12},
          {"planned_gb", static_cast<double>(memory.planned) * 1e-9},
          {"used_gb", static_cast<double>(memory.peak - memory.before) * 1e-9},
          {"context_gb", static_cast<double>(memory.before) * 1e-9},
          {"first_loss", trained.losses.front()},
          {"last_loss", trained.losses.back()},
          {"last_next_sentence_loss", trained.next_sentence_loss}};
}

void run(const Options& options) {
  say("begins");
  const bool is_gpu = options.device == "cuda";
  base::require(!options.kernels || (is_gpu && bench::can_record_kernels()),
                "--kernels needs a GPU and a build with CUPTI, which the CUDA toolkit has");
  base::require(options.order == "packs" || options.layout != "packed",
                "--layout packed needs --order packs");
  Memory memory{.before = is_gpu ? used_bytes() : 0};
  describe::ModelConfig model = describe::preset(options.model);
  model.hidden_dropout = options.hidden_dropout;
  model.attention_dropout = options.attention_dropout;
  const Sequences sequences(options, model.vocabulary);
  model.has_next_sentence = sequences.source().has_next_sentence();
  const data::StepBatchSource batches(sequences.source(), data_options(options), model, 1, kSeed);
  const schedule::Schedule schedule =
      schedule::generate_single({.num_micro_batches = batches.num_micro_batches(),
                                 .stage_layers = {static_cast<std::uint16_t>(model.num_layers)}});
  const pipeline::BertProgramOptions program{.model = model,
                                             .capacity = batches.capacity(),
                                             .seed = kSeed,
                                             .device = is_gpu ? tensor::Device::Cuda : tensor::Device::Cpu,
                                             .num_threads = 8,
                                             .records_work = !options.is_plain()};
  train::Replicas replicas(train::Mesh(1), schedule, program);
  say("memory is taken");
  base::ThreadPool pool(8);
  replicas.write_weights([&](const tensor::TensorView& weights_N) {
    model::initialise_weights(replicas.parameters(), kSeed, pool, weights_N);
  });
  say("weights are drawn");
  replicas.begin(0, 0);
  say("weights are there");
  data::Prefetch prefetch(batches, 0);
  const Trained trained = run_steps(replicas, prefetch, options);
  memory.peak = is_gpu ? used_bytes() : 0;
  memory.planned = pipeline::BertProgram::plan_memory(schedule, schedule::Rank{0}, program).num_bytes();
  write_json(options.losses, trained.losses);
  write_json(options.drawn_lengths, trained.drawn_lengths);
  const double flops = describe::Flops(describe::describe_bert(model)).training(trained.work);
  const kernels::GemmRate product = is_gpu ? kernels::measure_cuda_gemm_rate(1.0) : kernels::GemmRate{};
  if (options.kernels) {
    fmt::print("{}", record_kernels(replicas, prefetch, options, options.steps + kWarmUpSteps,
                                    {.model = model,
                                     .seconds_of_step = trained.seconds / static_cast<double>(options.steps),
                                     .flops_per_second = product.sustained}));
  }
  fmt::print("{}\n", report(options, trained, memory, flops, product).dump());
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  CLI::App app("Trains a BERT on a GPU on sequences of given lengths");
  CLI::App* input = app.add_option_group("sequences", "What is trained on");
  input->require_option(1);
  input->add_option("--lengths", options.lengths, "Histogram: line i counts sequences of length i + 1");
  input->add_option("--data", options.data, "A dataset that plenum prepare made");
  app.add_option("--model", options.model);
  app.add_option("--layout", options.layout)->check(CLI::IsMember({"unpadded", "padded", "packed"}));
  app.add_option("--order", options.order, "What a step is a number of; by packs its tokens hardly vary")
      ->check(CLI::IsMember({"packs", "sequences"}));
  app.add_option("--device", options.device);
  app.add_option("--losses", options.losses, "JSON file for the loss of each step");
  app.add_option("--drawn-lengths", options.drawn_lengths, "JSON file for the lengths of each timed step");
  app.add_option("--steps", options.steps);
  app.add_option("--tokens", options.tokens, "Of a step and of a micro-batch");
  app.add_option("--hidden-dropout", options.hidden_dropout);
  app.add_option("--attention-dropout", options.attention_dropout);
  app.add_option("--learning-rate", options.learning_rate);
  app.add_flag("--plain", options.plain, "Start every kernel by itself");
  app.add_flag("--kernels", options.kernels, "Say what the GPU did in a few steps more; implies --plain");
  CLI11_PARSE(app, argc, argv);
  try {
    plenum::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_gpu_train: {}\n", error.what());
    return 2;
  }
  return 0;
}
