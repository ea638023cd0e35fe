#pragma once

#include <cstddef>
#include <vector>

#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/model/micro_batch_staging.h"
#include "plenum/model/parameters.h"
#include "plenum/optim/optimizer.h"
#include "plenum/pipeline/bert_program.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::pipeline {

// What a BertProgram holds, as its parts want to see it.

/// The parameters of a rank's stages, or of its slice of them.
describe::ParameterTable table_of(const schedule::Schedule& schedule, schedule::Rank rank,
                                  const BertProgramOptions& options);

/// The rank's place among the holders of each of its stages.
std::vector<memory::Holder> holders_of(const schedule::Schedule& schedule, schedule::Rank rank);

memory::MemoryRequest request_of(const BertProgramOptions& options);
optim::OptimizerBuffers buffers_of(const memory::RankMemory& memory);

/// What passes read: the flat buffers, or the places into which buckets are gathered.
model::BertWeights weights_of(const describe::ParameterTable& table, const describe::ParameterShard& shard,
                              const memory::RankMemory& memory);

/// Where backward leaves gradients: in the flat buffer, or in the places that buckets have until they are
/// reduced.
model::BertGradients gradients_of(const describe::ParameterTable& table,
                                  const describe::ParameterShard& shard, const memory::RankMemory& memory);

/// For `count` micro-batches: those of the steps under way.
std::vector<model::MicroBatchStaging> stagings_of(const describe::ParameterTable& table,
                                                  const BertProgramOptions& options, std::size_t count,
                                                  const memory::RankMemory& memory);

}  // namespace plenum::pipeline
