#include "plenum/cli/training_display.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/cli/exit_codes.h"

namespace plenum::cli {
namespace {

using base::format_bytes;
using base::format_count;

std::string flops_text(double flops_per_second) {
  constexpr double kFromTera = 1e13;
  const bool is_tera = flops_per_second >= kFromTera;
  return fmt::format("{:.1f} {}FLOP/s", flops_per_second / (is_tera ? 1e12 : 1e9), is_tera ? "T" : "G");
}

std::string count_of(std::size_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", format_count(count), count == 1 ? singular : plural);
}

}  // namespace

std::string draw_training(const TrainingStatus& status, int width) {
  std::string line = fmt::format("step {}/{}  loss {:.3f}  {} tokens/s  {}", format_count(status.step),
                                 format_count(status.num_steps), status.loss,
                                 format_count(static_cast<std::uint64_t>(status.tokens_per_second)),
                                 flops_text(status.flops_per_second));
  if (status.product_rate > 0)
    line += fmt::format(" ({:.0f} %)", 100 * status.flops_per_second / status.product_rate);
  line += fmt::format("  {}  {} left", format_bytes(status.memory_bytes),
                      base::format_seconds(std::max(1.0, status.seconds_left)));
  return line.substr(0, static_cast<std::size_t>(std::max(0, width)));
}

std::string describe_device(const train::RunSummary& summary) {
  const bool is_gpu = summary.memory.device == tensor::Device::Cuda;
  std::string text = is_gpu ? summary.gpu
                            : fmt::format("{} of {}", count_of(summary.num_ranks, "rank", "ranks"),
                                          count_of(summary.threads_per_rank, "thread", "threads"));
  text += fmt::format(", {}{}; {}{} planned",
                      count_of(summary.micro_batches_per_rank, "micro-batch", "micro-batches"),
                      is_gpu ? " a step" : " each", format_bytes(summary.memory.planned_bytes),
                      is_gpu ? " of its memory" : "");
  if (summary.product_rate > 0)
    text += fmt::format("; matrix products reach {} here", flops_text(summary.product_rate));
  return text;
}

void TrainingDisplay::on_begin(const train::RunSummary& summary) {
  status_.num_steps = summary.num_steps;
  status_.step = summary.first_step;
  status_.product_rate = summary.product_rate;
  memory_ = summary.device_memory;
  line_.note(fmt::format("{} parameters in {} layers of width {}; {} of about {} tokens, {} an epoch",
                         format_count(static_cast<std::uint64_t>(summary.num_parameters)),
                         summary.model.num_layers, summary.model.width,
                         count_of(summary.num_steps, "step", "steps"),
                         format_count(static_cast<std::uint64_t>(summary.expected_tokens_per_step)),
                         format_count(summary.steps_per_epoch)));
  line_.note(describe_device(summary));
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
  status_.memory_bytes = memory_.used_bytes();
  constexpr int kNoTerminal = 1 << 10;
  line_.show(draw_training(status_, line_.is_terminal() ? line_.width() : kNoTerminal));
  seconds_ = tokens_ = flops_ = 0;
}

void TrainingDisplay::on_evaluation(std::uint64_t step, const train::Evaluation& evaluation) {
  line_.note(fmt::format("step {}: held-out loss {:.4f}, {:.2f} % of {} right", format_count(step),
                         evaluation.loss(), 100 * evaluation.words().accuracy,
                         evaluation.words().objective.labelled));
}

void TrainingDisplay::on_checkpoint(std::uint64_t /*step*/, const std::string& path) {
  line_.note(fmt::format("wrote {}", path));
}

void TrainingDisplay::on_hang(std::string_view line) {
  line_.erase();
  end_hanging_process(line);
}

void SilentDisplay::on_note(std::string_view line) {
  say(stderr, fmt::format("plenum: {}\n", line));
}

void SilentDisplay::on_hang(std::string_view line) {
  end_hanging_process(line);
}

}  // namespace plenum::cli
