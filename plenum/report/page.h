#pragma once

#include <string>
#include <vector>

#include "plenum/report/run_record.h"

namespace plenum::report {

struct PageOptions {
  std::string written;      ///< when, as the page says it
  int refresh_seconds = 0;  ///< after which the page loads itself anew; 0: it does not
};

/// A run as one HTML page that needs nothing else: curves, speed, data, memory, ranks, a step, events,
/// options. What the run has not recorded is named.
std::string run_page(const RunRecord& run, const PageOptions& options);

/// Runs side by side: their curves over each other, what they came to, and the options in which they differ.
/// kMostRuns at most, each of another name.
inline constexpr std::size_t kMostRuns = 8;
std::string comparison_page(const std::vector<RunRecord>& runs, const PageOptions& options);

/// The whole page around its content.
std::string page_html(const std::string& title, const std::string& content, const PageOptions& options);

}  // namespace plenum::report
