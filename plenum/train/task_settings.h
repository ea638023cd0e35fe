#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plenum/base/options.h"
#include "plenum/data/tasks/task_options.h"
#include "plenum/describe/task.h"

namespace plenum::train {

/// What a model is fine-tuned for, and on which files.
struct TaskSettings {
  std::optional<describe::TaskKind> kind;  ///< absent: the run pre-trains
  std::string train;
  std::string dev;     ///< that it is evaluated on; empty: none
  std::string test;    ///< that it labels in the end; empty: none
  std::string metric;  ///< the best checkpoint is chosen by; the task's first if empty
  data::TaskOptions data;

  /// Without those of the data, which are a table of their own.
  base::OptionTable table();
  /// Throws UserError for settings that are missing or contradict each other.
  void check() const;
};

/// Metric by which the best checkpoint is the one of the lowest loss.
inline constexpr const char* kLossMetric = "loss";

}  // namespace plenum::train
