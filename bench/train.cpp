// Trains a BERT on sequences of given lengths with random tokens and prints one line of JSON: how many real
// tokens and useful operations a second, the rate of products alone, and the peak of memory. See
// train_peer.py.
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "plenum/base/philox.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/step_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/micro_batch_assembly.h"
#include "plenum/data/batches/micro_batch_builder.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/flops.h"
#include "plenum/io/json_file.h"
#include "plenum/kernels/gemm_rate.h"
#include "plenum/model/initialise.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/generate/single.h"

#include "tests/support/synthetic_sequences.h"

namespace plenum {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kWarmupSteps = 1;

struct Options {
  std::string lengths;
  std::string model = "bert-mini";
  std::size_t threads = 2;
  std::int64_t micro_batch_tokens = 4096;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
};

using Lengths = std::vector<std::vector<std::int64_t>>;  // of each step

packing::LengthHistogram histogram_of(const Lengths& steps) {
  packing::LengthHistogram histogram;
  for (const auto& lengths : steps) {
    for (const std::int64_t length : lengths) {
      const auto at = static_cast<std::size_t>(length);
      if (histogram.counts.size() <= at) histogram.counts.resize(at + 1);
      ++histogram.counts[at];
    }
  }
  return histogram;
}

/// The items of every step; no sequence is used twice.
std::vector<std::vector<data::BatchSequence>> sequences_of(const Lengths& steps,
                                                           const packing::LengthHistogram& histogram) {
  const packing::SequenceIds ids(histogram);
  std::map<std::int64_t, std::uint64_t> used;
  std::vector<std::vector<data::BatchSequence>> result;
  for (const auto& lengths : steps) {
    result.emplace_back();
    for (const std::int64_t length : lengths) {
      result.back().push_back({.id = ids.first(length) + used[length]++,
                               .length = length,
                               .labels = {data::masked_count(length, data::MaskingOptions{}.rate)}});
    }
  }
  return result;
}

batch::Capacity capacity_of(const std::vector<std::vector<data::BatchSequence>>& steps, std::int64_t rows) {
  batch::Capacity capacity{.rows = rows};
  for (const auto& step : steps) {
    for (const data::BatchSequence& sequence : step) {
      capacity.max_length = std::max(capacity.max_length, sequence.length);
    }
    capacity.sequences = std::max(capacity.sequences, static_cast<std::int64_t>(step.size()));
  }
  capacity.labels[0] = rows / 3;
  return capacity;
}

std::vector<data::MicroBatchPlan> plan_step(const std::vector<data::BatchSequence>& sequences,
                                            const batch::Capacity& capacity) {
  const data::GlobalBatch none;
  return data::fill_micro_batches(
      data::cut_items(none, sequences, data::Layout::Unpadded, capacity.max_length), capacity);
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void run(const Options& options) {
  const double loaded = peak_bytes();
  const auto steps = io::read_json_file(options.lengths).get<Lengths>();
  describe::ModelConfig model = describe::preset(options.model);
  model.hidden_dropout = options.hidden_dropout;
  model.attention_dropout = options.attention_dropout;
  const packing::LengthHistogram histogram = histogram_of(steps);
  const test::SyntheticSequences source(histogram, {.vocabulary = model.vocabulary}, kSeed);
  const auto sequences = sequences_of(steps, histogram);
  const batch::Capacity capacity = capacity_of(sequences, options.micro_batch_tokens);
  std::vector<std::vector<data::MicroBatchPlan>> plans;
  std::size_t num_micro_batches = 0;
  for (const auto& step : sequences) {
    plans.push_back(plan_step(step, capacity));
    num_micro_batches = std::max(num_micro_batches, plans.back().size());
  }

  const schedule::Schedule schedule =
      schedule::generate_single({.num_micro_batches = num_micro_batches,
                                 .stage_layers = {static_cast<std::uint16_t>(model.num_layers)}});
  pipeline::BertProgram program(
      schedule, schedule::Rank{0},
      {.model = model, .capacity = capacity, .optimizer = {}, .seed = kSeed, .num_threads = options.threads});
  base::ThreadPool pool(options.threads);
  model::initialise_weights(program.parameters(), kSeed, pool, program.buffers().weights_N);
  program.begin(0);
  pipeline::Executor executor(schedule, pipeline::local_ranks({&program}),
                              {.hang_limit = std::chrono::hours(1)});
  const data::Masking masking({}, source.vocabulary(), kSeed, 0);

  batch::Work work;
  double seconds = 0;
  for (std::size_t step = 0; step < plans.size(); ++step) {
    batch::StepBatch batch{.step = step, .global = {}, .micro_batches = {}};
    batch.micro_batches.resize(num_micro_batches);
    for (std::size_t i = 0; i < plans[step].size(); ++i) {
      batch.micro_batches[i] =
          data::build_micro_batch(plans[step][i], source, masking, data::MicroBatchUse::Training);
      batch.global += batch.micro_batches[i].work();
    }
    const auto begin = std::chrono::steady_clock::now();
    program.begin_step(batch, 1e-4);
    executor.run(1);
    if (step < kWarmupSteps) continue;
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    work += batch.global;
  }
  const double peak = peak_bytes();
  const double gemm = kernels::measure_gemm_rate(pool, 2.0).fastest;
  const nlohmann::json result = {
      {"tokens_per_second", static_cast<double>(work.tokens) / seconds},
      {"flops_per_second", describe::Flops(describe::describe_bert(model)).training(work) / seconds},
      {"gemm_flops_per_second", gemm},
      {"peak_bytes", peak},
      {"loaded_bytes", loaded}};
  fmt::print("{}\n", result.dump());
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  plenum::Options options;
  CLI::App app("Trains a BERT on sequences of given lengths");
  app.add_option("--lengths", options.lengths, "JSON: for each step a list of lengths")->required();
  app.add_option("--model", options.model);
  app.add_option("--threads", options.threads);
  app.add_option("--micro-batch-tokens", options.micro_batch_tokens);
  app.add_option("--hidden-dropout", options.hidden_dropout);
  app.add_option("--attention-dropout", options.attention_dropout);
  CLI11_PARSE(app, argc, argv);
  try {
    plenum::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_train: {}\n", error.what());
    return 2;
  }
  return 0;
}
