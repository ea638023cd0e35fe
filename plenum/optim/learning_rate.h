#pragma once

#include <cstdint>
#include <optional>

#include "plenum/optim/duration.h"

namespace plenum::optim {

/// How the learning rate moves after its warm-up, as a share f of the peak. N is the number of steps, W of
/// the warm-up, t the step, from 0.
enum class LearningRateSchedule : std::uint8_t {
  Constant,    ///< 1
  Linear,      ///< (N - t) / (N - W), as in Hugging Face: from the peak down to 0
  BertLinear,  ///< 1 - t / N, as in the original BERT: as if there had been no warm-up
  Polynomial,  ///< (1 - (t + 1) / N)^power, as in NVIDIA's LAMB recipe; its warm-up is (t + 1) / W
  Cosine,      ///< (1 + cos(pi (t - W) / (N - W))) / 2, as in Hugging Face
  Wsd,         ///< 1, then 1 - sqrt(share of the decay): warm-up, stable, decay
};

struct LearningRateOptions {
  std::optional<double> peak;  ///< must be there when a LearningRate is made
  LearningRateSchedule schedule = LearningRateSchedule::Linear;
  Duration warmup{0.06, DurationUnit::Run};  ///< the rate grows from 0 in proportion to the step
  Duration decay{0.1, DurationUnit::Run};    ///< of Wsd: the last part of the run
  double power = 0.5;                        ///< of Polynomial
  double final_ratio = 0;                    ///< the floor as a share of the peak

  friend bool operator==(const LearningRateOptions&, const LearningRateOptions&) = default;
};

/// The learning rate of every step: peak * (final_ratio + (1 - final_ratio) f), and peak * t / W in the
/// warm-up. A warm-up that is a share of the run, if not all of it, leaves at least one step.
class LearningRate {
 public:
  /// Throws UserError if warm-up and decay do not fit into the run.
  LearningRate(const LearningRateOptions& options, std::uint64_t total_steps, const RunLength& run);

  /// Of a step, from 0. After the run it stays where the run ends.
  double at(std::uint64_t step) const;
  std::uint64_t num_warmup_steps() const { return warmup_steps_; }

 private:
  double share_at(double step) const;

  LearningRateOptions options_;
  double peak_;
  std::uint64_t total_steps_;
  std::uint64_t warmup_steps_;
  std::uint64_t decay_steps_;
};

}  // namespace plenum::optim
