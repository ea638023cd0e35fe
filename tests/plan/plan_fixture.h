#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plenum/describe/bert.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/step_costs.h"
#include "plenum/plan/step_work.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/fill/periodic_refresh.h"
#include "plenum/schedule/generate/generator.h"

#include "tests/support/fitted_options.h"

namespace plenum::test {

inline describe::ModelDescription planned_bert(std::int64_t num_layers = 4) {
  return describe::describe_bert({.vocabulary = 480,
                                  .width = 64,
                                  .num_layers = num_layers,
                                  .num_heads = 4,
                                  .mlp_width = 256,
                                  .max_positions = 128,
                                  .has_next_sentence = true});
}

/// Four nodes of four devices: 10 GFLOP/s, 1 GB/s, 1 us; links of 5 us and 100 MB/s, and half of that.
inline plan::Cluster small_cluster() {
  plan::Cluster cluster;
  cluster.name = "small";
  cluster.num_nodes = cluster.devices_per_node = 4;
  cluster.device.peak_flops = 1e10;
  cluster.device.peak_bytes_per_second = 1e9;
  cluster.device.launch_seconds = 1e-6;
  cluster.within_node = {.latency_seconds = 5e-6, .bytes_per_second = 1e8};
  cluster.between_nodes = {.latency_seconds = 10e-6, .bytes_per_second = 5e7};
  cluster.step_overhead_seconds = 3e-4;
  return cluster;
}

/// A micro-batch of so many sequences of so many tokens, padded to a length.
inline plan::MicroBatchWork micro_batch_of(std::int64_t num_sequences, std::int64_t length,
                                           std::int64_t padded_length = 0) {
  plan::MicroBatchWork micro_batch;
  micro_batch.rows = num_sequences * std::max(length, padded_length);
  micro_batch.work = {.tokens = num_sequences * length,
                      .squared_lengths = num_sequences * length * length,
                      .sequences = num_sequences,
                      .labels = {num_sequences * length * 3 / 20, num_sequences}};
  return micro_batch;
}

/// Micro-batches of which no two are alike, padded a little, one of them empty where there are several.
inline plan::StepWork uneven_work(std::size_t num_micro_batches) {
  plan::StepWork work;
  for (std::size_t i = 0; i < num_micro_batches; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    work.micro_batches.push_back(micro_batch_of(4 + number % 3, 40 + 7 * number % 31, 70));
  }
  if (num_micro_batches > 4) work.micro_batches[3] = {};
  return work;
}

/// A schedule of every kind that train makes for a model of four layers: all generators, ways to shard, tied
/// halves, recomputation, and K-FAC.
inline std::vector<schedule::Schedule> all_schedules() {
  using schedule::Recomputation;
  using schedule::Sharding;
  std::vector<schedule::Schedule> schedules;
  const auto add = [&](const schedule::Generator& generator, schedule::GeneratorOptions options) {
    options = fitted(generator, options);
    const auto num_stages =
        static_cast<std::uint16_t>(generator.is_pipeline() ? generator.num_stages(options) : 1);
    options.stage_layers = {static_cast<std::uint16_t>(4 / num_stages)};
    schedules.push_back(generator.generate(options));
    schedules.back().name += " " + std::to_string(schedules.size());
  };
  for (const schedule::Generator& generator : schedule::all_generators()) {
    const bool is_pipeline = generator.is_pipeline();
    for (const Recomputation recomputation : {Recomputation::None, Recomputation::Mlp, Recomputation::Full}) {
      add(generator, {.depth = 2,
                      .num_micro_batches = 4,
                      .num_replicas = 2,
                      .num_buckets = 2,
                      .recomputation = recomputation,
                      .has_tied_parameters = is_pipeline});
    }
    if (is_pipeline) continue;
    for (const Sharding sharding :
         {Sharding::None, Sharding::Optimizer, Sharding::Gradients, Sharding::Parameters}) {
      for (const bool has_norms : {false, true}) {
        const bool has_halves = generator.mesh == schedule::Mesh::Replicas && sharding <= Sharding::Optimizer;
        add(generator, {.num_micro_batches = 3,
                        .num_replicas = 5,
                        .num_buckets = 4,
                        .sharding = sharding,
                        .has_tied_parameters = has_halves,
                        .has_tied_halves = has_halves,
                        .has_tensor_norms = has_norms && sharding != Sharding::None});
      }
    }
  }
  const schedule::KfacFiller kfac(6);
  const std::size_t num_plain = schedules.size();
  for (std::size_t i = 0; i < num_plain; ++i) {
    const schedule::Problem& problem = schedules[i].problem;
    if (schedule::is_sharded(problem) || problem.has_tied_halves) continue;
    schedules.push_back(schedule::with_periodic_refresh(schedules[i], kfac, 3));
    schedules.back().name += " with K-FAC";
  }
  return schedules;
}

}  // namespace plenum::test
