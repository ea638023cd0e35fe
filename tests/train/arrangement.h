#pragma once

#include <cstdint>

#include "plenum/data/batches/training_data_options.h"
#include "plenum/schedule/core/sharding.h"
#include "plenum/train/run_options.h"

namespace plenum::train {

/// A way to run the same training.
struct Arrangement {
  const char* name;
  data::Layout layout;
  std::int64_t ranks;
  std::int64_t micro_batch_tokens;
  std::int64_t tp = 1;
  schedule::Sharding shard = schedule::Sharding::None;
  std::int64_t pp = 1;
  const char* schedule = "";
  std::int64_t layers = 2;
};

/// The options of a run that is the same to rounding in every arrangement, with dropout on.
inline RunOptions arranged(RunOptions options, const Arrangement& arrangement) {
  options.data.layout = arrangement.layout;
  options.data.order_choice = data::OrderChoice::Packs;
  options.data.micro_batch_tokens = arrangement.micro_batch_tokens;
  options.model.heads = 4;
  options.run.ranks = arrangement.ranks;
  options.run.tp = arrangement.tp;
  options.run.threads = arrangement.ranks;
  options.run.shard = arrangement.shard;
  options.run.pp = arrangement.pp;
  options.run.schedule = arrangement.schedule;
  options.model.layers = arrangement.layers;
  options.run.bucket_bytes = 1;  // a bucket for each layer
  options.optimizer.learning_rate.peak = 1e-3;
  return options;
}

}  // namespace plenum::train
