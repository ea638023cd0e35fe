#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/options.h"
#include "plenum/train/run_options.h"

namespace plenum::cli {

/// What `plenum plan` is asked. Model, data and optimizer are sections that it shares with `plenum train`.
struct PlanOptions {
  std::string histogram;
  std::optional<std::int64_t> max_length;
  std::string cluster;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> threads;
  std::optional<double> memory_limit;
  tensor::DType reduce_dtype = tensor::DType::Float32;
  std::int64_t top = 10;
  std::int64_t simulate = 200;
  std::string output;
  std::string svg;
  bool explain = false;
  std::vector<std::string> what_if;
  std::optional<double> price;
  bool json = false;
  train::RunOptions run;  ///< of it, model, data and optimizer

  std::vector<base::OptionTable> tables();
};

}  // namespace plenum::cli
