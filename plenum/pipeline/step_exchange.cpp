#include "plenum/pipeline/step_exchange.h"

namespace plenum::pipeline {
namespace {

using kernels::StepScalar;

/// 1 / count; nothing is summed where there is nothing to count.
double inverse_of(std::int64_t count) {
  return count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
}

/// Of an objective of the model.
std::int64_t num_losses(const describe::ModelDescription& model, std::size_t objective,
                        const batch::Work& work) {
  return describe::num_losses(model.heads[objective].objective, work.labels[objective], work.sequences);
}

double mean_of(double sum, std::int64_t count) {
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

}  // namespace

DueByClock& DueByClock::operator|=(const DueByClock& other) {
  is_time_up |= other.is_time_up;
  is_checkpoint_due |= other.is_checkpoint_due;
  is_evaluation_due |= other.is_evaluation_due;
  return *this;
}

tensor::TensorView view_of(HostScalars& scalars, std::size_t count) {
  return {scalars.data(), {static_cast<std::int64_t>(count)}};
}

HostScalars given_to_step(const batch::StepBatch& batch, const describe::ModelDescription& model,
                          double learning_rate, const DueByClock& due, bool is_stop_asked) {
  HostScalars given{};
  const auto set = [&](StepScalar which, double value) { given[kernels::index_of(which)] = value; };
  set(StepScalar::Stop, is_stop_asked ? 1 : 0);
  set(StepScalar::TimeUp, due.is_time_up ? 1 : 0);
  set(StepScalar::CheckpointDue, due.is_checkpoint_due ? 1 : 0);
  set(StepScalar::EvaluationDue, due.is_evaluation_due ? 1 : 0);
  for (std::size_t i = 0; i < model.heads.size(); ++i)
    set(kernels::loss_scale_of(i), inverse_of(num_losses(model, i, batch.global)));
  set(StepScalar::LearningRate, learning_rate);
  return given;
}

StepOutcome outcome_of(const HostScalars& decided, const batch::Work& global,
                       const describe::ModelDescription& model) {
  const auto at = [&](StepScalar which) { return decided[kernels::index_of(which)]; };
  StepOutcome outcome{.gradient_norm = at(StepScalar::GradientNorm),
                      .is_skipped = at(StepScalar::IsSkipped) > 0,
                      .is_stop_asked = at(StepScalar::Stop) > 0,
                      .due = {.is_time_up = at(StepScalar::TimeUp) > 0,
                              .is_checkpoint_due = at(StepScalar::CheckpointDue) > 0,
                              .is_evaluation_due = at(StepScalar::EvaluationDue) > 0},
                      .num_updates = static_cast<std::uint64_t>(at(StepScalar::NumUpdates))};
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    outcome.num_losses[i] = num_losses(model, i, global);
    outcome.losses[i] = mean_of(at(kernels::loss_of(i)), outcome.num_losses[i]);
  }
  return outcome;
}

}  // namespace plenum::pipeline
