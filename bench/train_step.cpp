// Measures training steps of a BERT on one rank and prints real tokens/s, useful FLOP/s, the share of this
// machine's rate of large products, and where the time goes by action:
//   build/bench/bench_train_step bert-mini [--threads N] [--steps N] [--batch 16384tok] [--micro-batch 4096]
// Lengths are those of Wikipedia's sequences, nothing is padded, dropout and the optimizer are on. Useful
// FLOPs are describe::training_flops.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/data/step_batches.h"
#include "plenum/data/synthetic_sequences.h"
#include "plenum/describe/flops.h"
#include "plenum/kernels/gemm_rate.h"
#include "plenum/kernels/linear.h"
#include "plenum/model/initialise.h"
#include "plenum/packing/synthetic_histogram.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/pipeline/executor.h"
#include "plenum/schedule/single.h"
#include "plenum/tensor/arena.h"

namespace plenum {
namespace {

struct Options {
  std::string model = "bert-mini";
  std::size_t num_threads = 1;
  std::uint64_t num_steps = 5;
  std::string global_batch = "16384tok";
  std::int64_t micro_batch_tokens = 4096;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Measures training steps of a BERT on one rank.");
  app.add_option("model", options.model);
  app.add_option("--threads", options.num_threads);
  app.add_option("--steps", options.num_steps);
  app.add_option("--batch", options.global_batch);
  app.add_option("--micro-batch", options.micro_batch_tokens);
  app.parse(argc, argv);
  return options;
}

double gemm_flops(std::size_t num_threads) {
  base::ThreadPool pool(num_threads);
  const auto bytes = static_cast<std::int64_t>(num_threads * (kernels::linear_scratch_bytes() + 64));
  const tensor::Arena scratch(static_cast<std::size_t>(bytes));
  const tensor::Stream stream(
      pool, scratch.view({.offset = 0, .dtype = tensor::DType::Byte, .shape = {bytes}}).span<std::byte>());
  return kernels::measure_gemm_flops(stream, 2);
}

/// Seconds of each type of action on the compute lane in the last step.
std::map<std::string, double> seconds_by_action(const schedule::Schedule& schedule,
                                                const pipeline::MeasuredCycle& measured) {
  constexpr auto kCompute = static_cast<std::size_t>(schedule::Lane::Compute);
  const auto actions = schedule.ranks.front().lane(schedule::Lane::Compute).actions();
  std::map<std::string, double> seconds;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const schedule::ActionTime& time = measured.times.front()[kCompute][i];
    seconds[std::string(schedule::traits_of(actions[i].type).name)] += time.end - time.start;
  }
  return seconds;
}

void run(const Options& options) {
  const describe::ModelConfig model = describe::preset(options.model);
  const data::SyntheticSequences sequences(packing::wikipedia_like_histogram(model.max_positions, 100'000),
                                           {.vocabulary = model.vocabulary}, 1);
  data::TrainingDataOptions data_options;
  data_options.global_batch = options.global_batch;
  data_options.micro_batch_tokens = options.micro_batch_tokens;
  const data::StepBatchSource source(sequences, data_options, model, 1, 1);
  const schedule::Schedule schedule =
      schedule::generate_single({.num_micro_batches = source.micro_batches_per_rank(),
                                 .stage_layers = {static_cast<std::uint16_t>(model.num_layers)}});
  pipeline::BertProgram program(
      schedule, {},
      {.model = model, .capacity = source.capacity(), .seed = 1, .num_threads = options.num_threads});
  {
    base::ThreadPool pool(options.num_threads);
    model::initialise_weights(model, program.parameters(), 1, pool, program.buffers().weights_N);
  }
  pipeline::Executor executor(schedule, {&program}, {.hang_limit = std::chrono::hours(1)});

  const double peak = gemm_flops(options.num_threads);
  fmt::print(
      "{}: {} threads, {} micro-batches of up to {} rows, {} in the arena, products at {:.1f} GFLOP/s\n",
      options.model, options.num_threads, source.micro_batches_per_rank(), source.capacity().rows,
      base::format_bytes(program.memory().num_bytes()), peak / 1e9);
  for (std::uint64_t step = 0; step < options.num_steps; ++step) {
    const model::StepBatch batch = source.make(step, {});
    const auto start = std::chrono::steady_clock::now();
    program.begin_step(batch, 1e-4);
    executor.run(1);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double flops = describe::training_flops(model, batch.global) / seconds;
    fmt::print("step {}: loss {:.3f}, {:.2f} s, {:.0f} tokens/s, {:.1f} GFLOP/s ({:.1f} %);", step,
               program.outcome().loss(), seconds, static_cast<double>(batch.global.tokens) / seconds,
               flops / 1e9, 100 * flops / peak);
    for (const auto& [name, time] : seconds_by_action(schedule, executor.measured())) {
      fmt::print(" {} {:.3f} s", name, time);
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace plenum

int main(int argc, char** argv) {
  try {
    plenum::run(plenum::parse(argc, argv));
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
