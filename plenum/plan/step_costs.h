#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/device_model.h"
#include "plenum/plan/link.h"
#include "plenum/plan/matrix_work.h"
#include "plenum/plan/step_work.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/cost_model.h"

namespace plenum::plan {

/// The rule by which weights are updated, as far as time goes.
enum class UpdateRule : std::uint8_t { AdamW, Lamb };

/// What decides how long a step's actions take, beside the schedule and what it works on.
struct StepCostOptions {
  describe::ModelDescription model = {};  ///< all of it, or with tensor parallelism the slice of one rank
  UpdateRule update = UpdateRule::AdamW;
  MatrixWork matrices = {};       ///< that the schedule has, or that the update does where it has none
  std::size_t reduced_bytes = 4;  ///< in which an element of the gradient travels
};

/// Where the time of an action goes; its total is the action's.
struct ActionParts {
  OpSeconds device;
  LinkSeconds link;

  double total() const { return device.total() + link.total(); }
  ActionParts& operator+=(const ActionParts& other);
};

/// How long the actions of a schedule take on a cluster: the operations that the engine does for each, on the
/// cluster's device, and the messages, over its links. With tensor parallelism a rank of the schedule is
/// several ranks of the cluster, which sum within actions.
///
/// - A collective goes over the link within a node if all its ranks are on one node, else over that between
///   nodes. What it costs is what all of its ranks are busy with; who comes late is for the simulation to
///   say.
/// - Agree carries the cluster's step_overhead_seconds, as a launch: it is in every step of every rank once,
///   and no rank goes on before it.
/// - A send holds the wire for its bytes; latency comes on top (latency_seconds). An empty micro-batch costs
///   nothing. ExchangeData takes no time: it runs beside everything.
/// - Of the tied word table's rows that a step reads, as many are counted as tokens have different words
///   (expected_distinct_words).
/// - Of what holders of a stage divide map by map, those that are written out of an abridged schedule do what
///   all would do in the mean.
/// - Muon and SOAP update the matrices of layers: all of it in Update, or where the schedule has actions for
///   it only the weights. Where SOAP's bases are left to Update, each step has its share of their refreshes.
///
/// What was asked once is remembered, so it is for one thread at a time.
class StepCosts final : public schedule::CostModel {
 public:
  /// Borrows the schedule and the cluster. Throws UserError unless there is work for each of the schedule's
  /// micro-batches, as many ranks in the cluster as take part, and an update rule that fits the schedule.
  StepCosts(const schedule::Schedule& schedule, StepCostOptions options, const StepWork& work,
            const Cluster& cluster);
  ~StepCosts() override;

  /// Another step of the same schedule.
  void set_work(const StepWork& work);

  double seconds(schedule::Rank rank, const schedule::Action& action) const override;
  double latency_seconds(schedule::Rank from, schedule::Rank to) const override;
  ActionParts parts(schedule::Rank rank, const schedule::Action& action) const;
  /// The operations of all ranks in a step; those that many actions share stand once.
  std::vector<Op> ops() const;
  /// If micro-batches had no padding. Messages and collectives stay as they are.
  ActionParts parts_without_padding(schedule::Rank rank, const schedule::Action& action) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plenum::plan
