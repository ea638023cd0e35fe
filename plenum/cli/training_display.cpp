#include "plenum/cli/training_display.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "plenum/base/machine.h"
#include "plenum/base/thread_pool.h"
#include "plenum/base/units.h"
#include "plenum/kernels/gemm_rate.h"

namespace plenum::cli {
namespace {

using base::format_bytes;
using base::format_count;

constexpr double kRateSeconds = 0.3;

/// What matrix products reach on this many threads of this machine.
double measure_peak(std::size_t num_threads) {
  base::ThreadPool pool(num_threads);
  return kernels::measure_gemm_flops(pool, kRateSeconds);
}

std::string count_of(std::size_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", format_count(count), count == 1 ? singular : plural);
}

}  // namespace

std::string draw_training(const TrainingStatus& status, int width) {
  std::string line = fmt::format("step {}/{}  loss {:.3f}  {} tokens/s  {:.1f} GFLOP/s",
                                 format_count(status.step), format_count(status.num_steps), status.loss,
                                 format_count(static_cast<std::uint64_t>(status.tokens_per_second)),
                                 status.flops_per_second / 1e9);
  if (status.peak_flops > 0)
    line += fmt::format(" ({:.0f} %)", 100 * status.flops_per_second / status.peak_flops);
  line += fmt::format("  {}  {} left", format_bytes(status.memory_bytes),
                      base::format_seconds(std::max(1.0, status.seconds_left)));
  return line.substr(0, static_cast<std::size_t>(std::max(0, width)));
}

void TrainingDisplay::on_begin(const train::RunSummary& summary) {
  const std::size_t num_threads = summary.num_ranks * summary.threads_per_rank;
  status_.num_steps = summary.num_steps;
  status_.step = summary.first_step;
  status_.peak_flops = measure_peak(num_threads);
  line_.note(fmt::format("{} parameters in {} layers of width {}; {} of about {} tokens, {} an epoch",
                         format_count(static_cast<std::uint64_t>(summary.num_parameters)),
                         summary.model.num_layers, summary.model.width,
                         count_of(summary.num_steps, "step", "steps"),
                         format_count(static_cast<std::uint64_t>(summary.expected_tokens_per_step)),
                         format_count(summary.steps_per_epoch)));
  line_.note(fmt::format("{} of {}, {} each; {} planned; matrix products reach {:.1f} GFLOP/s here",
                         count_of(summary.num_ranks, "rank", "ranks"),
                         count_of(summary.threads_per_rank, "thread", "threads"),
                         count_of(summary.micro_batches_per_rank, "micro-batch", "micro-batches"),
                         format_bytes(summary.memory.planned_bytes), status_.peak_flops / 1e9));
  line_.restart();
}

void TrainingDisplay::on_step(const train::StepReport& report) {
  seconds_ += report.seconds;
  tokens_ += static_cast<double>(report.work.tokens);
  flops_ += report.flops;
  all_seconds_ += report.seconds;
  ++all_steps_;
  status_.step = report.step;
  status_.loss = report.outcome.loss();
  if (!line_.is_due()) return;
  status_.tokens_per_second = tokens_ / seconds_;
  status_.flops_per_second = flops_ / seconds_;
  status_.seconds_left = static_cast<double>(status_.num_steps - status_.step) * all_seconds_ / all_steps_;
  status_.memory_bytes = base::peak_memory_bytes();
  constexpr int kNoTerminal = 1 << 10;
  line_.show(draw_training(status_, line_.is_terminal() ? line_.width() : kNoTerminal));
  seconds_ = tokens_ = flops_ = 0;
}

void TrainingDisplay::on_evaluation(std::uint64_t step, const train::Evaluation& evaluation) {
  line_.note(fmt::format("step {}: held-out loss {:.4f}, {:.2f} % of masked tokens right", format_count(step),
                         evaluation.loss(), 100 * evaluation.masked_accuracy));
}

void TrainingDisplay::on_checkpoint(std::uint64_t /*step*/, const std::string& path) {
  line_.note(fmt::format("wrote {}", path));
}

void SilentDisplay::on_note(std::string_view line) {
  say(stderr, fmt::format("plenum: {}\n", line));
}

}  // namespace plenum::cli
