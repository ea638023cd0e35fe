#pragma once

#include <cstdint>
#include <vector>

#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {

/// What lies in memory for a micro-batch of a step. What backward leaves for weight gradient and curvature of
/// a layer takes the place of what the layer kept, or recomputed. Things of one kind have the same size for
/// the same micro-batch (a layer's, or a message's), so they can take turns in a slot.
enum class TenantKind : std::uint8_t {
  Input,           ///< of a layer at which a forward or recomputation begins; of a stage's first, the message
  Kept,            ///< of a layer: what its forward keeps beside the input; nothing if all is recomputed
  Recomputed,      ///< of a layer: what its recomputation makes
  Output,          ///< of a stage whose next is on another rank; of the last, for the gradient of the head
  OutputGradient,  ///< of a stage; of the last, what its forward makes with the loss
  InputGradient,   ///< of a layer at which a backward begins, for the stage or layers before
};
inline constexpr std::size_t kNumTenantKinds = 6;

/// One such thing.
struct Tenant {
  TenantKind kind = TenantKind::Kept;
  StageId stage = {};
  MicroBatchId micro_batch = {};
  LayerId layer = {};  ///< the stage's first for Output and OutputGradient

  friend bool operator==(const Tenant&, const Tenant&) = default;
};

/// That an action uses a tenant, of the step it works on.
struct TenantUse {
  Tenant tenant;
  bool is_written = false;  ///< from here on there may be bytes of it; else it is read (and perhaps added to)
};

/// What a message carries: a send reads it, a receive writes it.
Tenant message_tenant(const Action& message, const StageLayers& layers);

/// Says which memory the actions of a rank use. Dataflow says what an action waits for; this says for whose
/// bytes, and for whose it does not wait because they are surely there.
class TenantUses {
 public:
  /// Borrows the dataflow.
  TenantUses(const Dataflow& dataflow, Rank rank);

  /// Overwrites `uses` with what the action writes and reads on this rank; what it makes and needs again
  /// itself is named twice.
  void of(const Action& action, std::vector<TenantUse>& uses) const;

  /// Whether the input of a layer is a tenant of its own: a forward or recomputation begins there. Where it
  /// is not, it is part of what the layer keeps.
  bool has_input(LayerId layer) const { return begins_[layer.index()]; }

 private:
  void add_forward(const Action& action, std::vector<TenantUse>& uses) const;
  void add_backward(const Action& action, std::vector<TenantUse>& uses) const;
  void add_head(const Action& action, std::vector<TenantUse>& uses) const;
  static void add_embedding(const Action& action, std::vector<TenantUse>& uses);
  void add_layers(const Action& action, std::vector<TenantUse>& uses) const;
  void add_kept(const Action& action, LayerId layer, std::vector<TenantUse>& uses) const;

  const Dataflow& dataflow_;
  Rank rank_;
  std::vector<bool> begins_;  ///< of each layer: a forward or recomputation of this rank begins there
};

}  // namespace plenum::schedule
