#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {

/// A piece of work that may run in a bubble. What it reads and makes follows from its action (see Dataflow),
/// how long it takes from the cost model.
struct WorkItem {
  Action action;                  ///< of age 0: it works on the values of the step whose statistics are taken
  double kept_bytes = 0;          ///< what its inputs keep alive on a rank until it has run
  std::size_t max_pieces = 1;     ///< into how many parts it may be split; 1: it must run whole
  std::size_t max_age = kMaxAge;  ///< steps after its statistics, at most
};

/// A kind of work that is done beside training and may lag behind it: what it adds to every step, and what
/// renews it once. Which of its items waits for which is not said here but derived from their actions.
class Filler {
 public:
  virtual ~Filler() = default;

  virtual std::string_view name() const = 0;

  /// Sets what the problem must say for the filler's actions to be allowed: preconditioner, num_factors.
  virtual void change(Problem& problem) const = 0;

  /// Appends what a rank does in every step, in order, before it agrees and updates. Actions that may be
  /// stale have age 0; fill() gives them the age of the newest refresh that is done by then.
  virtual void add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const = 0;

  /// Appends a rank's part of one refresh from the statistics of one step. A collective is named by every
  /// member of its group.
  virtual void add_refresh(const Dataflow& dataflow, Rank rank, std::vector<WorkItem>& items) const = 0;
};

/// What a filler adds to every step stands before the first action of these types in its lane.
constexpr bool ends_step(ActionType type, Preconditioner preconditioner) {
  const bool is_of_agreement = type == ActionType::SquareGradient || type == ActionType::Agree;
  if (is_of_agreement) return !follows_agreement(preconditioner);
  return type == ActionType::UpdateMoments || type == ActionType::ReduceTensorNorms ||
         type == ActionType::Update;
}

}  // namespace plenum::schedule
