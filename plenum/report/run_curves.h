#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plenum/report/line_chart.h"
#include "plenum/report/run_record.h"

namespace plenum::report {

/// A column of a run's steps as a curve.
Curve step_curve(const RunRecord& run, const std::vector<double>& values, std::string name, std::size_t color,
                 Curve::Style style = Curve::Style::Line);
/// The same with each value the mean of those around it, a fiftieth of the run to either side at most.
Curve smooth_curve(const RunRecord& run, const std::vector<double>& values, std::string name,
                   std::size_t color);
/// A number of a run's evaluations.
Curve evaluation_curve(const RunRecord& run, const std::string& value, std::string name, std::size_t color);

/// The names of what evaluations have, in order: losses, or scores.
std::vector<std::string> evaluated_losses(const RunRecord& run);
std::vector<std::string> evaluated_scores(const RunRecord& run);

/// Real tokens per second of each step.
std::vector<double> tokens_per_second(const RunRecord& run);
/// Useful FLOP/s of each step as a share of what matrix products reach.
std::vector<double> peak_shares(const RunRecord& run);

/// Where the run was resumed and where steps were skipped.
std::vector<ChartMark> marks_of(const RunRecord& run);

}  // namespace plenum::report
