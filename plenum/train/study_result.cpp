#include "plenum/train/study_result.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <span>

#include "plenum/train/study_statistics.h"

namespace plenum::train {
namespace {

std::span<const double> counted(const std::vector<double>& steps) {
  return std::span(steps).subspan(std::min(steps.size(), StudyResult::kNumBefore));
}

std::optional<double> mean_where_all_have(const std::vector<StudyMeasurement>& runs,
                                          std::optional<double> StudyMeasurement::*value) {
  std::vector<double> values;
  for (const StudyMeasurement& run : runs) {
    if (!(run.*value)) return std::nullopt;
    values.push_back(*(run.*value));
  }
  if (values.empty()) return std::nullopt;
  return mean_of(values);
}

struct Stretch {
  double begin = 0;
  double end = 0;
};

/// Sorted, and where they overlap made one.
std::vector<Stretch> united(std::vector<Stretch> intervals) {
  std::ranges::sort(intervals, {}, &Stretch::begin);
  std::vector<Stretch> result;
  for (const Stretch& interval : intervals) {
    if (!result.empty() && interval.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, interval.end);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

/// How long `whole` is where none of `parts` is. Both united.
double length_outside(const std::vector<Stretch>& whole, const std::vector<Stretch>& parts) {
  double length = 0;
  for (const Stretch& interval : whole) {
    length += interval.end - interval.begin;
    for (const Stretch& part : parts)
      length -= std::max(0.0, std::min(part.end, interval.end) - std::max(part.begin, interval.begin));
  }
  return length;
}

}  // namespace

std::vector<double> StudyResult::measured_steps() const {
  std::size_t count = runs.empty() ? 0 : runs.front().step_seconds.size();
  for (const StudyMeasurement& run : runs) count = std::min(count, run.step_seconds.size());
  std::vector<double> steps(count, 0);
  for (const StudyMeasurement& run : runs)
    for (std::size_t i = 0; i < count; ++i)
      steps[i] += run.step_seconds[i] / static_cast<double>(runs.size());
  const std::span<const double> rest = counted(steps);
  return {rest.begin(), rest.end()};
}

std::vector<double> StudyResult::predicted_steps() const {
  const std::span<const double> rest = counted(prediction.step_seconds);
  const std::size_t count = runs.empty() ? rest.size() : std::min(rest.size(), measured_steps().size());
  return {rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count)};
}

double StudyResult::predicted_step() const {
  return mean_of(predicted_steps());
}

double StudyResult::measured_step() const {
  return mean_of(measured_steps());
}

double StudyResult::spread() const {
  std::vector<double> means;
  for (const StudyMeasurement& run : runs) means.push_back(mean_of(counted(run.step_seconds)));
  return spread_of(means);
}

double StudyResult::step_r_squared() const {
  return r_squared(predicted_steps(), measured_steps());
}

bool StudyResult::has_steps_of_different_sizes() const {
  constexpr double kLeastVariation = 0.05;
  return variation_of(predicted_steps()) >= kLeastVariation;
}

double StudyResult::scaled_step_r_squared() const {
  std::vector<double> scaled = predicted_steps();
  const double factor = measured_step() / predicted_step();
  for (double& step : scaled) step *= factor;
  return r_squared(scaled, measured_steps());
}

std::optional<double> StudyResult::attainable_step_r_squared() const {
  std::vector<std::vector<double>> steps;
  for (const StudyMeasurement& run : runs) {
    const std::span<const double> rest = counted(run.step_seconds);
    steps.emplace_back(rest.begin(), rest.end());
    const double factor = measured_step() / mean_of(rest);
    for (double& step : steps.back()) step *= factor;
  }
  return attainable_r_squared(steps);
}

double StudyResult::tokens_per_step() const {
  return runs.empty() ? 0 : mean_of(counted(runs.front().step_tokens));
}

std::size_t StudyResult::used_bytes() const {
  std::size_t most = 0;
  for (const StudyMeasurement& run : runs) most = std::max(most, run.used_bytes);
  return most;
}

double StudyResult::memory_error() const {
  return static_cast<double>(prediction.peak_bytes) / static_cast<double>(used_bytes()) - 1;
}

std::optional<double> StudyResult::exposed_seconds() const {
  return mean_where_all_have(runs, &StudyMeasurement::exposed_seconds);
}

std::optional<double> StudyResult::skew_seconds() const {
  return mean_where_all_have(runs, &StudyMeasurement::skew_seconds);
}

double exposed_communication(const std::vector<LaneAction>& step) {
  struct RankStretches {
    std::vector<Stretch> computing;
    std::vector<Stretch> communicating;
  };
  std::map<std::size_t, RankStretches> of_ranks;
  for (const LaneAction& action : step) {
    RankStretches& own = of_ranks[action.rank];
    (action.is_computed ? own.computing : own.communicating).push_back({action.start, action.end});
  }
  double sum = 0;
  for (auto& [rank, own] : of_ranks)
    sum += length_outside(united(std::move(own.communicating)), united(std::move(own.computing)));
  return of_ranks.empty() ? 0 : sum / static_cast<double>(of_ranks.size());
}

double backward_skew(const std::vector<LaneAction>& step) {
  std::map<std::size_t, double> ends;
  for (const LaneAction& action : step)
    if (action.is_backward) ends[action.rank] = std::max(ends[action.rank], action.end);
  if (ends.empty()) return 0;
  const auto [least, most] = std::ranges::minmax(ends | std::views::values);
  return most - least;
}

}  // namespace plenum::train
