#pragma once

#include "plenum/schedule/generate/generator.h"

namespace plenum::schedule {

/// Every rank holds the whole model as one stage and accumulates the gradients of its own micro-batches. The
/// last backward runs bucket by bucket, and each bucket's reduction runs beside the rest of it. With
/// Sharding::Optimizer a rank keeps and updates its shard only (ZeRO-1); with
/// Sharding::Gradients every backward runs bucket by bucket, and of gradients too a rank keeps its shard
/// (ZeRO-2); with Sharding::Parameters passes find parameters gathered bucket by bucket, and nothing but
/// shards lives through a step (ZeRO-3).
Schedule generate_data_parallel(const GeneratorOptions& options);

}  // namespace plenum::schedule
