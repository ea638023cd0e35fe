#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/options.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/simulate/profile_costs.h"

namespace plenum::cli {

/// What fills the bubbles.
enum class FillKind { None, Kfac, Shampoo };

/// The settings of `plenum simulate`.
struct SimulateOptions {
  std::string schedule = "1f1b";
  std::string from;
  bool compare = false;

  std::int64_t stages = 4;
  std::int64_t micro_batches = 8;
  std::int64_t replicas = 1;
  std::int64_t layers_per_stage = 2;
  std::string stage_layers;
  std::string sizes;
  std::int64_t chunks = 2;
  std::int64_t buckets = 1;
  bool recompute = false;
  schedule::Sharding shard = schedule::Sharding::None;
  bool tied = false;
  bool tied_halves = false;

  std::string profile;
  std::int64_t batch = 32;
  double forward_ms = 1;
  double backward_ms = 2;
  double curvature_ms = 2.5;
  double inversion_ms = 7;
  double precondition_ms = 0.7;
  double update_ms = 0;
  double latency_us = 0;
  std::optional<std::int64_t> bandwidth_mb_per_second;
  double boundary_mib = 0;

  FillKind fill = FillKind::None;
  schedule::FillMode fill_mode = schedule::FillMode::Deferred;
  double margin = 0.01;
  std::optional<std::int64_t> fill_memory_mib;
  std::optional<std::int64_t> max_cycle;
  bool drains = false;
  bool on_one_rank = false;

  bool json = false;
  std::string output;
  std::string svg;
  std::string trace;
  bool rehearse = false;
  std::string overlay;
  std::int64_t show_steps = 3;
  std::int64_t width = 0;
  bool all_lanes = false;
};

/// Binds the options, which must outlive it.
base::OptionTable simulate_option_table(SimulateOptions& options);

/// Throws UserError for options that cannot be kept together, whatever the schedule.
void require_consistent(const SimulateOptions& options);

/// Those options that are not as they are by default and have no effect beside --from or --compare, as
/// "--stages, --chunks".
std::string unused_options(SimulateOptions& options);

/// What the generator is asked for. A generator that is no pipeline gets the whole model as one stage.
schedule::GeneratorOptions generator_options(const SimulateOptions& options,
                                             const schedule::Generator& generator);

/// What one layer costs: from the profile, or by the single times.
schedule::LayerCosts layer_costs(const SimulateOptions& options);

/// The linear maps of a layer of BERT whose gradients have factors.
std::vector<schedule::LinearMap> bert_factor_maps();

/// How these become durations of actions. Where the layers of a schedule have another number of linear maps
/// with factors than BERT's, second-order work is divided evenly over them.
schedule::ProfileOptions profile_options(const SimulateOptions& options, const schedule::Problem& problem);

}  // namespace plenum::cli
