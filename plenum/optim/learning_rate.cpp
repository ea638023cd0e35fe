#include "plenum/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plenum/base/check.h"

namespace plenum::optim {
namespace {

std::uint64_t steps_of_warmup(const Duration& warmup, std::uint64_t total_steps, const RunLength& run) {
  const std::uint64_t steps = num_steps(warmup, run, "warmup", total_steps);
  const bool is_part = warmup.unit == DurationUnit::Run && warmup.amount < 1;
  return is_part && total_steps > 0 ? std::min(steps, total_steps - 1) : steps;
}

}  // namespace

LearningRate::LearningRate(const LearningRateOptions& options, std::uint64_t total_steps,
                           const RunLength& run)
    : options_(options),
      peak_(options.peak.value()),
      total_steps_(total_steps),
      warmup_steps_(steps_of_warmup(options.warmup, total_steps, run)),
      decay_steps_(options.schedule == LearningRateSchedule::Wsd
                       ? num_steps(options.decay, run, "decay-duration", total_steps)
                       : 0) {
  base::require(total_steps > 0, "the run must have at least one step");
  base::require(warmup_steps_ <= total_steps,
                "the warm-up is longer than the run; shorten --warmup: {} ({} steps) of {} steps",
                to_string(options.warmup), warmup_steps_, total_steps);
  base::require(warmup_steps_ + decay_steps_ <= total_steps,
                "warm-up and decay are longer than the run; shorten --warmup or --decay-duration: {} + {} of "
                "{} steps",
                warmup_steps_, decay_steps_, total_steps);
}

double LearningRate::at(std::uint64_t step) const {
  auto t = static_cast<double>(std::min(step, total_steps_));
  const auto warmup = static_cast<double>(warmup_steps_);
  if (options_.schedule == LearningRateSchedule::Polynomial) {
    // NVIDIA's recipe counts steps from 1.
    t = std::min(t + 1, static_cast<double>(total_steps_));
  }
  if (t < warmup) return peak_ * t / warmup;
  return peak_ * (options_.final_ratio + (1 - options_.final_ratio) * share_at(t));
}

double LearningRate::share_at(double step) const {
  const auto total = static_cast<double>(total_steps_);
  const auto warmup = static_cast<double>(warmup_steps_);
  const auto decay = static_cast<double>(decay_steps_);
  const double progress = (step - warmup) / std::max(1.0, total - warmup);
  switch (options_.schedule) {
    case LearningRateSchedule::Constant:
      return 1;
    case LearningRateSchedule::Linear:
      return 1 - progress;
    case LearningRateSchedule::BertLinear:
      return 1 - step / total;
    case LearningRateSchedule::Polynomial:
      return std::pow(1 - step / total, options_.power);
    case LearningRateSchedule::Cosine:
      return (1 + std::cos(std::numbers::pi * progress)) / 2;
    case LearningRateSchedule::Wsd:
      return decay == 0 ? 1 : 1 - std::sqrt(std::max(0.0, step - (total - decay)) / decay);
  }
  return 1;
}

}  // namespace plenum::optim
