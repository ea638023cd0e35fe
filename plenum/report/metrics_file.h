#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plenum/report/run_record.h"

namespace plenum::report {

/// Reads metrics.jsonl; adds a line to `faults` for what is damaged.
StepColumns read_metrics(const std::string& path, std::vector<std::string>& faults);

/// Reads evaluations.jsonl likewise.
std::vector<EvaluationRecord> read_evaluations(const std::string& path, std::vector<std::string>& faults);

/// Reads events.jsonl likewise.
std::vector<RunEvent> read_events(const std::string& path, std::vector<std::string>& faults);

}  // namespace plenum::report
