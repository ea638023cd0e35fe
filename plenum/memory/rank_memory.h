#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/activation_layout.h"
#include "plenum/memory/activation_slots.h"
#include "plenum/memory/kfac_memory.h"
#include "plenum/memory/micro_batch_layout.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::memory {

/// Steps that may be under way at the same time: one runs, one is prepared. Each has its micro-batches.
inline constexpr std::size_t kStepsUnderWay = 2;

/// How the optimizer updates the weights of layers: as all others, or by themselves, as matrices
/// (kernels::muon_step, kernels::soap_step).
enum class LayerUpdate : std::uint8_t { AsOthers, Muon, Soap };

/// What a rank trains with, beside its model and its schedule.
struct MemoryRequest {
  batch::Capacity capacity;  ///< of a micro-batch
  tensor::Device device = tensor::Device::Cpu;
  tensor::Precision precision = tensor::precision_of(device);
  std::size_t num_threads = 1;                          ///< of the CPU
  tensor::DType reduce_dtype = tensor::DType::Float32;  ///< in which gradients travel between ranks
  RunningAverages kfac_averages = RunningAverages::No;
  LayerUpdate layer_update = LayerUpdate::AsOthers;
  std::int64_t soap_limit = 0;                     ///< kernels::SoapStep
  std::optional<std::int64_t> words_of_step = {};  ///< that differ, at most; by the capacity if absent
};

/// All that lies in a rank's arena.
struct RankMemory {
  // Of all parameters that the rank holds, flat in the order of the table.
  /// Of the shard, weights_S, where parameters are sharded; where products read another type, as on a GPU,
  /// wherever anything is.
  tensor::TensorView weights_N;
  /// As products read them; weights_N where that is the same type. Left out where parameters are sharded.
  tensor::TensorView compute_weights_N;
  tensor::TensorView gradients_N;  ///< where gradients are sharded, of the shard: gradients_S
  /// Where weights_N is of the shard: of each of its buckets, the place into which it is gathered, as
  /// products read it. In compute_weights_N, or, where parameters are sharded, shared with others
  /// (schedule::Dataflow::kBucketPlaces).
  std::vector<tensor::TensorView> gathered;
  /// Beside places of another type than weights_N: the weights of norms (describe::NormElements), gathered,
  /// too, for a whole step.
  tensor::TensorView exact_norms_E;
  /// Where gradients are sharded: of each bucket, its place until it is reduced, shared in the same way.
  std::vector<tensor::TensorView> flights;
  tensor::TensorView wire_B;  ///< BFloat16, of the largest bucket, where gradients travel so
  /// Where ranks sum the halves of the tied word table's gradient by themselves: that of the embedding, a row
  /// for each word that the step's micro-batches may have.
  tensor::TensorView tied_rows_RD;
  tensor::TensorView first_moments_S, second_moments_S;  ///< of the rank's shard
  tensor::TensorView tensor_squares_P2;  ///< of each parameter, where ranks sum them (optim::Optimizer)
  tensor::TensorView chunks_C4;          ///< kernels::OptimizerWork; on the GPU
  tensor::TensorView muon_room;          ///< kernels::MuonStep
  tensor::TensorView muon_chunks_C8;     ///< the same; on the GPU
  tensor::TensorView soap_state;         ///< kernels::SoapStep
  tensor::TensorView soap_room;
  /// Of each refresh under way (schedule::Refreshes) the factors of own_matrices(), those of a matrix's rows
  /// before those of its columns, where bases are refreshed by those of an earlier step or in pieces, which
  /// work in their place.
  std::vector<tensor::TensorView> soap_factors;
  tensor::TensorView map_wire;   ///< pipeline::MapGather's, where holders divide Muon or SOAP
  tensor::TensorView scalars_C;  ///< kernels::StepScalar
  TrainingMemory activations;
  tensor::TensorView scratch;
  /// Byte: for every micro-batch of the steps under way, as MicroBatchLayout says; on the GPU.
  std::vector<tensor::TensorView> micro_batches;
};

/// Lays it out for a rank that updates a shard (schedule_shard) and has so many activations alive at a
/// time.
RankMemory plan_rank_memory(const describe::ParameterTable& table, const schedule::Schedule& schedule,
                            schedule::Rank rank, const describe::ParameterShard& shard,
                            const ActivationSlots& slots, const MemoryRequest& request,
                            tensor::MemoryPlan& plan);

/// Every byte of the arena of a rank that holds the table's layers (held_layers), by purpose: a function of
/// its arguments alone, for both devices in any build. Throws UserError for what kernels of the device cannot
/// compute, such as the width of heads.
tensor::MemoryLayout plan_memory(const describe::ParameterTable& table, const schedule::Schedule& schedule,
                                 schedule::Rank rank, const MemoryRequest& request);

}  // namespace plenum::memory
