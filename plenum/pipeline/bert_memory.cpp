#include "plenum/pipeline/bert_memory.h"

#include "plenum/describe/bert.h"
#include "plenum/describe/norm_elements.h"
#include "plenum/describe/tensor_parallel.h"

namespace plenum::pipeline {
namespace {

using schedule::Rank;
using schedule::Schedule;
using tensor::TensorView;

memory::LayerUpdate layer_update_of(optim::OptimizerKind kind) {
  if (kind == optim::OptimizerKind::Muon) return memory::LayerUpdate::Muon;
  return kind == optim::OptimizerKind::Soap ? memory::LayerUpdate::Soap : memory::LayerUpdate::AsOthers;
}

/// A flat buffer that lies in the places of buckets.
std::vector<model::FlatPart> parts_of(const describe::ParameterShard& shard,
                                      const std::vector<TensorView>& places) {
  std::vector<model::FlatPart> parts;
  for (std::size_t i = 0; i < places.size(); ++i) parts.push_back({shard.buckets()[i].elements, places[i]});
  return parts;
}

std::vector<model::FlatPart> norms_of(const describe::ParameterTable& table, const TensorView& norms_E) {
  const describe::NormElements norms(table);
  std::vector<model::FlatPart> parts;
  for (const describe::NormElements::Run& run : norms.runs())
    parts.push_back({run.elements, norms_E.rows(run.begin, run.elements.end - run.elements.begin)});
  return parts;
}

}  // namespace

describe::ParameterTable table_of(const Schedule& schedule, Rank rank, const BertProgramOptions& options) {
  return {describe::tensor_parallel_slice(describe::describe_bert(options.model), options.tensor_parallel),
          memory::held_layers(schedule, rank)};
}

std::vector<memory::Holder> holders_of(const Schedule& schedule, Rank rank) {
  std::vector<memory::Holder> holders;
  for (const schedule::StageId stage : schedule.ranks[rank.index()].stages)
    holders.emplace_back(schedule, rank, stage);
  return holders;
}

memory::MemoryRequest request_of(const BertProgramOptions& options) {
  return {.capacity = options.capacity,
          .device = options.device,
          .precision = options.precision,
          .num_threads = options.num_threads,
          .reduce_dtype = options.reduce_dtype,
          .kfac_averages =
              options.optimizer.kfac.average ? memory::RunningAverages::Yes : memory::RunningAverages::No,
          .layer_update = layer_update_of(options.optimizer.update_kind()),
          .soap_limit = options.optimizer.soap.limit};
}

optim::OptimizerBuffers buffers_of(const memory::RankMemory& memory) {
  return {.weights_N = memory.weights_N,
          // What is gathered is rounded on the way.
          .compute_weights_N = memory.gathered.empty() ? memory.compute_weights_N : memory.weights_N,
          .are_weights_of_shard = !memory.gathered.empty(),
          .gradients_N = memory.gradients_N,
          .are_gradients_of_shard = !memory.flights.empty(),
          .first_moments_S = memory.first_moments_S,
          .second_moments_S = memory.second_moments_S,
          .chunks_C4 = memory.chunks_C4,
          .muon = {.room = memory.muon_room, .chunks_C8 = memory.muon_chunks_C8},
          .soap = {.state = memory.soap_state, .room = memory.soap_room}};
}

model::BertWeights weights_of(const describe::ParameterTable& table, const describe::ParameterShard& shard,
                              const memory::RankMemory& memory) {
  if (!memory.gathered.empty()) {
    const std::vector<model::FlatPart> places = parts_of(shard, memory.gathered);
    if (!memory.exact_norms_E) return model::weights_of(table, places, places);
    return model::weights_of(table, norms_of(table, memory.exact_norms_E), places);
  }
  return model::weights_of(table, {memory.weights_N, memory.compute_weights_N});
}

model::BertGradients gradients_of(const describe::ParameterTable& table,
                                  const describe::ParameterShard& shard, const memory::RankMemory& memory) {
  if (!memory.flights.empty()) return model::gradients_of(table, parts_of(shard, memory.flights));
  return model::gradients_of(table, memory.gradients_N);
}

std::vector<model::MicroBatchStaging> stagings_of(const describe::ParameterTable& table,
                                                  const BertProgramOptions& options, std::size_t count,
                                                  const memory::RankMemory& memory) {
  std::vector<model::MicroBatchStaging> stagings;
  for (std::size_t i = 0; i < count; ++i) {
    if (options.device == tensor::Device::Cpu) {
      stagings.emplace_back(table.model());
    } else {
      stagings.emplace_back(table.model(), memory::computed_capacity(options.capacity, options.device),
                            memory.micro_batches[i]);
    }
  }
  return stagings;
}

}  // namespace plenum::pipeline
