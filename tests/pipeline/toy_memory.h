#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "plenum/pipeline/stage_program.h"
#include "plenum/schedule/core/rank_slots.h"

#include "tests/pipeline/toy_model.h"

namespace plenum::pipeline {

/// The plan of a rank; of a schedule that check() refuses, and that therefore may have none, a slot for each
/// tenant of the last few steps.
schedule::RankSlots toy_slots(const schedule::Dataflow& dataflow, schedule::Rank rank);

/// The planned memory of a toy rank. A tenant gets its slot when the action that first writes it begins, and
/// gives it back when its last reader has ended: then the slot is filled with NaN, as it is at first. Throws
/// InternalError where a slot is needed that is still to be read, and where what is read is not there.
class ToyMemory {
 public:
  ToyMemory(const schedule::Dataflow& dataflow, schedule::Rank rank, const ToyModel& model,
            schedule::RankSlots slots);

  /// An action is about to write.
  void begin(const ActionRun& run);
  /// It has read what it reads. What is sent may have been read before: the slot may have been taken by
  /// another tenant then.
  void end(const ActionRun& run);

  /// The elements of a tenant of a step: of Kept and Recomputed [3, maps, tokens, width] (inputs, outputs and
  /// errors of the maps), of OutputGradient [tokens, width] and then [tokens, vocabulary], else [tokens,
  /// width].
  std::span<double> at(const schedule::Tenant& tenant, std::uint64_t step);

  bool has_input(schedule::LayerId layer) const { return uses_of_.has_input(layer); }

 private:
  /// How often a tenant is read.
  struct Readers {
    std::size_t on_rank = 0;
    std::size_t by_sends = 0;
  };
  struct Slot {
    std::optional<schedule::Tenant> tenant;
    std::uint64_t step = 0;
    Readers left = {};
    Values values;
  };
  using Key = std::tuple<schedule::TenantKind, schedule::StageId, schedule::MicroBatchId, schedule::LayerId,
                         std::size_t>;

  void take(const schedule::Tenant& tenant, std::uint64_t step);
  Slot& slot_of(const schedule::Tenant& tenant, std::uint64_t step);
  Key key_of(const schedule::Tenant& tenant, std::uint64_t step) const;
  std::size_t elements_per_token(schedule::TenantKind kind) const;
  void count_readers(const schedule::RankProgram& program);

  const schedule::Dataflow& dataflow_;
  ToyModel model_;
  schedule::RankSlots plan_;
  schedule::TenantUses uses_of_;
  std::vector<std::size_t> num_tokens_;  ///< of each micro-batch
  std::map<Key, Readers> readers_;       ///< of each tenant of a step of the cycle
  std::mutex mutex_;
  std::vector<std::vector<Slot>> slots_;  ///< of each kind
};

}  // namespace plenum::pipeline
