#include "plenum/cli/training_display.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/cli/exit_codes.h"
#include "plenum/cli/fine_tuning_report.h"
#include "plenum/cli/progress_bar.h"

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

/// The pieces of a status line.
class StatusItems {
 public:
  explicit StatusItems(const TrainingStatus& status) : status_(status) {}

  std::string step() const {
    return fmt::format("step {}/{}", format_count(status_.step), format_count(status_.num_steps));
  }
  double share() const {
    return status_.num_steps == 0
               ? 0
               : static_cast<double>(status_.step) / static_cast<double>(status_.num_steps);
  }
  std::string share_text() const { return fmt::format("{:3.0f} %", std::floor(100 * share())); }
  std::string loss() const { return status_.loss ? fmt::format("loss {:.3f}", *status_.loss) : "no loss"; }
  std::string time_left() const {
    return fmt::format("{} left", base::format_seconds(std::max(1.0, status_.seconds_left)));
  }
  std::string speed() const {
    return fmt::format("{} tokens/s",
                       format_count(static_cast<std::uint64_t>(std::max(0.0, status_.tokens_per_second))));
  }
  std::string flops() const {
    std::string text = flops_text(status_.flops_per_second);
    if (status_.product_rate <= 0) return text;
    return fmt::format("{} ({:.0f} %)", text, 100 * status_.flops_per_second / status_.product_rate);
  }
  std::string memory() const { return format_bytes(status_.memory_bytes); }
  std::string learning_rate() const { return fmt::format("lr {:.3g}", status_.learning_rate); }

 private:
  const TrainingStatus& status_;
};

constexpr int kGap = 2;  // between two items
constexpr int kNarrowestTrainingBar = 10;
constexpr int kWidestTrainingBar = 30;

/// The first items that fit into a width together.
class FittingItems {
 public:
  explicit FittingItems(int width) : room_(width + kGap) {}

  /// Takes the room of an item. Nothing fits any more after one that did not.
  bool take(int columns) {
    is_full_ |= columns + kGap > room_;
    if (is_full_) return false;
    room_ -= columns + kGap;
    return true;
  }
  bool take(const std::string& item) { return take(static_cast<int>(item.size())); }
  int room() const { return room_; }

 private:
  int room_;
  bool is_full_ = false;
};

/// "2026-11-16 08:12:11", by the clock on the wall.
std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

}  // namespace

std::string draw_training(const TrainingStatus& status, int width, bool color) {
  const StatusItems items(status);
  FittingItems fitting(width);
  // By what matters; they are shown in another order, in which the bar stands beside the step.
  if (!fitting.take(items.step())) return "";
  std::string behind;
  const auto append = [&](const std::string& item) {
    const bool fits = fitting.take(item);
    if (fits) behind += std::string(kGap, ' ') + item;
    return fits;
  };
  append(items.loss());
  append(items.time_left());
  const bool has_share = fitting.take(items.share_text());
  const bool has_bar = fitting.take(kNarrowestTrainingBar);
  for (const std::string& item : {items.speed(), items.flops(), items.memory()}) {
    if (!append(item)) break;
  }
  std::string line = items.step();
  if (has_bar) {
    const int bar = std::min(kNarrowestTrainingBar + fitting.room(), kWidestTrainingBar);
    line += std::string(kGap, ' ') + draw_bar(items.share(), bar, color);
  }
  if (has_share) line += std::string(kGap, ' ') + items.share_text();
  return line + behind;
}

std::string log_training(const TrainingStatus& status) {
  const StatusItems items(status);
  return fmt::format("{}  {}  {}  {}  {}  {}  {}  {}", items.step(), items.share_text(), items.loss(),
                     items.learning_rate(), items.time_left(), items.speed(), items.flops(), items.memory());
}

std::string describe_device(const train::RunSummary& summary) {
  const bool is_gpu = summary.memory.device == tensor::Device::Cuda;
  std::string text = is_gpu ? summary.gpu
                            : fmt::format("{} of {}", count_of(summary.num_ranks, "rank", "ranks"),
                                          count_of(summary.threads_per_rank, "thread", "threads"));
  if (summary.ranks_per_model > 1) text += fmt::format(", {} to a model", summary.ranks_per_model);
  if (!summary.pipeline.empty()) text += fmt::format(" ({})", summary.pipeline);
  text += fmt::format(", {}{}; {}{} planned",
                      count_of(summary.micro_batches_per_rank, "micro-batch", "micro-batches"),
                      is_gpu                     ? " a step"
                      : summary.pipeline.empty() ? " each"
                                                 : " for each replica",
                      format_bytes(summary.memory.planned_bytes), is_gpu ? " of its memory" : "");
  if (summary.product_rate > 0)
    text += fmt::format("; matrix products reach {} here", flops_text(summary.product_rate));
  return text;
}

std::string describe_run(const train::RunSummary& summary) {
  const auto num_parameters = static_cast<std::uint64_t>(summary.num_parameters);
  const auto tokens = static_cast<std::uint64_t>(summary.expected_tokens_per_step);
  const auto epochs = static_cast<double>(summary.num_steps) /
                      static_cast<double>(std::max<std::uint64_t>(1, summary.steps_per_epoch));
  const auto num_layers = static_cast<std::size_t>(summary.model.num_layers);
  std::string text =
      fmt::format("model: {}, {} parameters, {} of width {}\n", summary.model_name,
                  format_count(num_parameters), count_of(num_layers, "layer", "layers"), summary.model.width);
  text += fmt::format("steps: {} of about {} tokens, {:.3g} epochs of {}\n", format_count(summary.num_steps),
                      format_count(tokens), epochs, count_of(summary.steps_per_epoch, "step", "steps"));
  text += fmt::format("learning rate: {:g} after {} of warmup, then {}\n", summary.learning_rate,
                      count_of(summary.warmup_steps, "step", "steps"), summary.learning_rate_schedule);
  text += fmt::format("device: {}\n", describe_device(summary));
  if (summary.predicted_step_seconds > 0) {
    text += fmt::format("predicted: {:.4g} ms a step, {} tokens/s, {} to train\n",
                        1e3 * summary.predicted_step_seconds,
                        format_count(static_cast<std::uint64_t>(summary.expected_tokens_per_step /
                                                                summary.predicted_step_seconds)),
                        base::format_seconds(summary.predicted_step_seconds *
                                             static_cast<double>(summary.num_steps - summary.first_step)));
  }
  text += fmt::format("checkpoints: {}, {}", summary.checkpoints, summary.checkpoint_times);
  if (!summary.evaluation_times.empty()) text += fmt::format("\nevaluations: {}", summary.evaluation_times);
  return text;
}

void TrainingDisplay::note(std::string_view line) {
  line_.note(line_.is_terminal() ? std::string(line) : fmt::format("{}  {}", time_stamp(), line));
}

void TrainingDisplay::on_begin(const train::RunSummary& summary) {
  status_.num_steps = summary.num_steps;
  steps_per_epoch_ = summary.steps_per_epoch;
  status_.step = summary.first_step;
  status_.product_rate = summary.product_rate;
  memory_ = summary.device_memory;
  line_.note(describe_run(summary));
  for (const std::string& choice : choices_) line_.note("chosen: " + choice);
  choices_.clear();
  line_.restart();
}

void TrainingDisplay::on_step(const train::StepReport& report) {
  seconds_ += report.seconds;
  tokens_ += static_cast<double>(report.work.tokens);
  flops_ += report.flops;
  all_seconds_ += report.seconds;
  ++all_steps_;
  status_.step = report.step;
  status_.loss = report.outcome.known_loss();
  status_.learning_rate = report.learning_rate;
  if (!line_.is_due()) return;
  status_.tokens_per_second = tokens_ / seconds_;
  status_.flops_per_second = flops_ / seconds_;
  status_.seconds_left = static_cast<double>(status_.num_steps - status_.step) * all_seconds_ / all_steps_;
  status_.memory_bytes = memory_.used_bytes();
  line_.show(line_.is_terminal() ? draw_training(status_, line_.width(), line_.has_color())
                                 : fmt::format("{}  {}", time_stamp(), log_training(status_)));
  seconds_ = tokens_ = flops_ = 0;
}

void TrainingDisplay::on_evaluation(std::uint64_t step, const train::Evaluation& evaluation) {
  if (!evaluation.scores.empty()) {
    const double epoch =
        static_cast<double>(step) / static_cast<double>(std::max<std::uint64_t>(1, steps_per_epoch_));
    note(fmt::format("step {}, epoch {:.3g}: dev loss {:.4f}, {}", format_count(step), epoch,
                     evaluation.loss(), scores_text(evaluation.scores)));
    return;
  }
  note(fmt::format("step {}: held-out loss {:.4f}, {:.2f} % of {} right", format_count(step),
                   evaluation.loss(), 100 * evaluation.words().accuracy,
                   evaluation.words().objective.labelled));
}

void TrainingDisplay::on_checkpoint(std::uint64_t /*step*/, const std::string& path) {
  note(fmt::format("wrote {}", path));
}

void TrainingDisplay::on_hang(std::string_view line) {
  line_.erase();
  end_process_(line);
}

void SilentDisplay::on_note(std::string_view line) {
  say(stream_, fmt::format("plenum: {}\n", line));
}

void SilentDisplay::on_hang(std::string_view line) {
  end_process_(line);
}

}  // namespace plenum::cli
