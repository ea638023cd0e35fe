#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plenum/schedule/core/action.h"
#include "plenum/schedule/core/recomputation.h"
#include "plenum/schedule/core/sharding.h"

namespace plenum::schedule {

/// What gradients pass through between reduction and update.
enum class Preconditioner : std::uint8_t {
  None,
  Kfac,
  Shampoo,  ///< and SOAP
  Muon,     ///< keeps nothing: its maps have owners, no factors
};

/// Whether it works on gradients that the agreement has clipped. Otherwise ranks agree on what it has made of
/// them.
constexpr bool follows_agreement(Preconditioner preconditioner) {
  return preconditioner == Preconditioner::Shampoo || preconditioner == Preconditioner::Muon;
}

/// What a step works on: the things that actions name.
struct Problem {
  std::vector<std::uint16_t> stage_layers = {};       ///< layers of each stage, in order of the model
  std::uint32_t num_micro_batches = 0;                ///< of the global batch, over all replicas
  std::vector<std::uint32_t> micro_batch_sizes = {};  ///< tokens of each; empty when all are alike
  Recomputation recomputation = Recomputation::None;
  Sharding sharding = Sharding::None;
  Preconditioner preconditioner = Preconditioner::None;
  std::uint16_t num_factors = 0;  ///< linear maps of a layer that have owners and factors of their own
  /// K-FAC's statistics cover those micro-batches of which the schedule has a CurvatureA, a CurvatureB, map
  /// by map, and not all.
  bool has_partial_curvature = false;
  std::uint8_t staleness = 0;        ///< greatest age that an action may have
  bool has_tied_parameters = false;  ///< the first and the last stage share a parameter
  /// Its holders sum the halves of its gradient by themselves: that of the last layers as soon as it is
  /// complete, of that of the first layers the rows that the step reads.
  bool has_tied_halves = false;
  bool has_tensor_norms = false;  ///< an update scales each tensor by its norm (LAMB)

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Whether the holders of a stage divide its update.
constexpr bool is_sharded(const Problem& problem) {
  return problem.sharding != Sharding::None;
}

/// The actions of one lane over the steps of a cycle, in order.
class LaneProgram {
 public:
  std::size_t num_steps() const { return step_ends_.size(); }
  std::span<const Action> actions() const { return actions_; }
  std::span<const Action> step(std::size_t index) const;
  /// The position in actions() at which a step begins.
  std::size_t step_begin(std::size_t index) const { return index == 0 ? 0 : step_ends_[index - 1]; }

  std::size_t step_end(std::size_t index) const { return step_ends_[index]; }
  /// The step that holds a position in actions().
  std::size_t step_of(std::size_t position) const;

  void append(const Action& action) { actions_.push_back(action); }
  void reserve(std::size_t num_actions) { actions_.reserve(num_actions); }
  /// Closes the step that append() filled.
  void end_step() { step_ends_.push_back(static_cast<std::uint32_t>(actions_.size())); }

  friend bool operator==(const LaneProgram&, const LaneProgram&) = default;

 private:
  std::vector<Action> actions_;
  std::vector<std::uint32_t> step_ends_;
};

/// What one rank holds and does.
struct RankProgram {
  std::vector<StageId> stages;  ///< whose parameters it holds
  std::array<LaneProgram, kNumLanes> lanes;

  LaneProgram& lane(Lane lane) { return lanes[static_cast<std::size_t>(lane)]; }
  const LaneProgram& lane(Lane lane) const { return lanes[static_cast<std::size_t>(lane)]; }
  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

/// A training step, or a cycle of several, as data: for each rank a few ordered lanes of actions. Training
/// repeats the cycle. Step t of a run does what step t mod num_steps() says.
struct Schedule {
  std::string name;
  Problem problem;
  std::vector<RankProgram> ranks;

  std::size_t num_stages() const { return problem.stage_layers.size(); }
  std::size_t num_steps() const { return ranks.empty() ? 0 : ranks.front().lanes.front().num_steps(); }
  std::size_t num_actions() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The layers of every stage as ranges of the whole model.
class StageLayers {
 public:
  explicit StageLayers(const Problem& problem);

  LayerId first(StageId stage) const { return LayerId::at(begin_[stage.index()]); }
  LayerId end(StageId stage) const { return LayerId::at(begin_[stage.index() + 1]); }
  std::size_t count(StageId stage) const { return begin_[stage.index() + 1] - begin_[stage.index()]; }
  std::size_t total() const { return begin_.back(); }
  std::size_t num_stages() const { return begin_.size() - 1; }

  /// An action over the whole stage.
  Action whole(ActionType type, StageId stage, MicroBatchId micro_batch = MicroBatchId::none()) const;

 private:
  std::vector<std::uint32_t> begin_;
};

/// The send of what a computation makes for the stage after or before its own; nothing if it makes no such
/// thing. Whether that stage lies on another rank is not asked.
std::optional<Action> message_after(const Action& action, const StageLayers& layers);

/// Throws UserError unless there are stages with layers, micro-batches, and as many sizes and factors as the
/// rest asks for.
void require_well_formed(const Problem& problem);

/// Throws UserError unless the problem is well formed, the ids of every action lie in their ranges, its
/// fields are those its type names, every lane has the same number of steps, every stage is held by a rank,
/// and the forwards and inversions that the problem asks for are not many more than the actions. What else
/// must be right is for check() to say.
void require_well_formed(const Schedule& schedule);

/// The part of require_well_formed() that looks at the problem and at who holds what, not at actions.
void require_placed_problem(const Schedule& schedule);

/// Why an action cannot stand in this lane of this rank; null if it can. The part of require_well_formed()
/// that looks at one action.
const char* reason_against(const Action& action, Lane lane, const RankProgram& rank, const Problem& problem,
                           const StageLayers& layers);

}  // namespace plenum::schedule
