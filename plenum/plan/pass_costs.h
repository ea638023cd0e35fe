#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/plan/action_ops.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/step_costs.h"
#include "plenum/plan/step_work.h"

namespace plenum::plan {

/// Whether padding counts.
enum class Padding : std::uint8_t { Counted, LeftOut };

/// The costs of operations on a cluster's device, and of sums over the ranks that hold slices.
class PartCosts {
 public:
  /// Borrows both.
  PartCosts(const ActionOps& ops, const Cluster& cluster);

  /// Notes every operation whose costs are asked for from here on. Borrows it.
  void note_in(std::vector<Op>* noted) { noted_ = noted; }

  ActionParts of(const std::vector<Op>& ops) const;
  ActionParts of(const PartWork& work) const;
  /// A sum over the ranks that hold slices, which lie next to each other.
  LinkSeconds sum_over_slices(double bytes) const;

 private:
  const Link& link_of_slices() const;

  const ActionOps& ops_;
  const Cluster& cluster_;
  std::vector<Op>* noted_ = nullptr;
};

/// What passes over layers of micro-batches cost. Layers that are alike, and micro-batches of equal work, are
/// computed once.
class PassCosts {
 public:
  /// Borrows both.
  PassCosts(const ActionOps& ops, const PartCosts& costs);

  void set_work(const StepWork& work);
  const ComputedWork& work(base::MicroBatchId micro_batch) const {
    return computed_[2 * kind_of_[micro_batch.index()]];
  }
  /// A number that micro-batches of equal work share.
  std::size_t kind(base::MicroBatchId micro_batch) const { return kind_of_[micro_batch.index()]; }
  std::size_t first_alike(std::size_t layer) const { return alike_[layer]; }

  /// Of layers [first, end), with the embedding of the first and the heads of the last.
  ActionParts of(Pass pass, base::MicroBatchId micro_batch, base::LayerId first, base::LayerId end,
                 Gradients gradients, Padding padding) const;

 private:
  static constexpr std::size_t kNumPasses = static_cast<std::size_t>(Pass::RecomputeFull) + 1;

  const std::vector<ActionParts>& parts_of(Pass pass, std::size_t computed, Gradients gradients) const;

  const ActionOps& ops_;
  const PartCosts& costs_;
  std::vector<std::size_t> alike_;                      ///< of each layer
  std::vector<std::size_t> different_;                  ///< layers, one for each kind
  std::vector<std::vector<std::uint16_t>> num_before_;  ///< by kind of layer: how many come before each layer
  std::vector<std::size_t> kind_of_;                    ///< of each micro-batch
  std::vector<ComputedWork> computed_;                  ///< of each kind, with padding and without
  /// By computed work, pass and gradients: the embedding's, the heads', then each kind of layer. Empty: not
  /// yet asked for.
  mutable std::vector<std::vector<ActionParts>> parts_;
};

}  // namespace plenum::plan
