#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/train/fine_tuning.h"
#include "plenum/train/trainer.h"

namespace plenum::cli {

/// "accuracy 0.8012, matthews 0.4421".
std::string scores_text(const std::vector<data::TaskScore>& scores);
/// By their names.
nlohmann::ordered_json scores_object(const std::vector<data::TaskScore>& scores);

/// A run that is done, and what is left of it.
std::string fine_tuning_text(const train::TrainingResult& result, const train::FineTunedModel& model,
                             const std::string& run);
nlohmann::ordered_json fine_tuning_object(const train::TrainingResult& result,
                                          const train::FineTunedModel& model, const std::string& run);

/// What came of one of several runs that differ by their seed.
struct SeedResult {
  std::int64_t seed = 0;
  std::string run;
  std::vector<data::TaskScore> dev;  ///< of its best checkpoint; none without --dev
  std::vector<data::TaskScore> test;
  std::optional<double> loss;  ///< of that checkpoint on --dev
};

/// A table with a line for each of them, their mean and standard deviation; below it which of them is the
/// best.
std::string seeds_text(const std::vector<SeedResult>& results, const std::string& metric,
                       const std::string& directory);
/// Names the best of them by the metric, which may be kLossMetric; none without --dev.
nlohmann::ordered_json seeds_object(const std::vector<SeedResult>& results, const std::string& metric);

}  // namespace plenum::cli
