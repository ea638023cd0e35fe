#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// How far a measured span is from its prediction: measured - predicted.
struct SpanError {
  double start_seconds = 0;  ///< counted from the beginning of its step
  double duration_seconds = 0;
};

/// How well the durations of a category were predicted.
struct CategoryError {
  Category category = Category::Other;
  std::size_t num_spans = 0;
  double predicted_seconds = 0;  ///< sum of durations
  double measured_seconds = 0;
  double mean_error_seconds = 0;        ///< mean of |measured - predicted| duration
  double relative_error = 0;            ///< sum of |measured - predicted| / sum of measured; 0 where both are
  double mean_start_error_seconds = 0;  ///< mean of |measured - predicted| start
  std::uint32_t worst_span = 0;         ///< the greatest |measured - predicted| duration
};

/// A prediction laid over a measurement of the same schedule. Borrows both timelines.
struct Overlay {
  const Timeline* predicted = nullptr;
  const Timeline* measured = nullptr;
  std::vector<SpanError> errors;          ///< of each span
  std::vector<CategoryError> categories;  ///< those that occur
  double predicted_step_seconds = 0;      ///< mean over the steps
  double measured_step_seconds = 0;
  /// The span whose duration was predicted worst. Messages and collectives, which wait for others, count only
  /// if there is nothing else.
  std::uint32_t worst_span = 0;
};

/// Matches two timelines span by span. Throws UserError that names the first difference if they are not of
/// the same schedule.
Overlay lay_over(const Timeline& predicted, const Timeline& measured);

/// The overlay in words: a table of categories, the step time, the action that differs most.
std::string overlay_text(const Overlay& overlay);

/// The overlay as a JSON file: the step, and of every action where it ran, and start and end as predicted and
/// as measured, in seconds from the beginning of the step.
std::string overlay_json(const Overlay& overlay, std::string_view title);

/// The overlay as an SVG file: for each rank the prediction above the measurement, from one beginning.
std::string overlay_svg(const Overlay& overlay, std::string title);

}  // namespace plenum::trace
