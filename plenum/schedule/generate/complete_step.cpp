#include "plenum/schedule/generate/complete_step.h"

#include <algorithm>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/simulate/message_order.h"

namespace plenum::schedule {
namespace {

bool is_backward(ActionType type) {
  return type == ActionType::Backward || type == ActionType::InputGradient;
}

bool makes_weight_gradient(ActionType type) {
  return type == ActionType::Backward || type == ActionType::WeightGradient;
}

class StepCompletion {
 public:
  explicit StepCompletion(StepDraft draft)
      : draft_(std::move(draft)),
        layers_(draft_.problem),
        runners_(layers_.num_stages() * draft_.problem.num_micro_batches, Rank::none()),
        num_holders_(layers_.num_stages(), 0) {
    for (std::size_t rank = 0; rank < draft_.compute.size(); ++rank) {
      std::vector<StageId>& held = draft_.stages[rank];
      std::sort(held.begin(), held.end());
      for (const StageId stage : held) ++num_holders_[stage.index()];
      num_tied_ranks_ += holds_tied(Rank::at(rank));
      for (const Action& action : draft_.compute[rank]) {
        if (action.type == ActionType::Forward) runner(action.stage, action.micro_batch) = Rank::at(rank);
      }
    }
  }

  Schedule run() {
    Schedule schedule{.name = draft_.name, .problem = draft_.problem, .ranks = {}};
    schedule.ranks.resize(draft_.compute.size());
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      fill_rank(Rank::at(rank), schedule.ranks[rank]);
    }
    return schedule;
  }

 private:
  Rank& runner(StageId stage, MicroBatchId micro_batch) {
    return runners_[stage.index() * draft_.problem.num_micro_batches + micro_batch.index()];
  }

  bool is_remote(Rank rank, std::size_t stage, MicroBatchId micro_batch) {
    return stage < layers_.num_stages() && runner(StageId::at(stage), micro_batch) != rank;
  }

  void fill_rank(Rank rank, RankProgram& program) {
    program.stages = draft_.stages[rank.index()];
    const std::vector<Action>& order = draft_.compute[rank.index()];
    LaneProgram& compute = program.lane(Lane::Compute);
    compute.reserve(order.size() + 2 * program.stages.size());
    program.lane(Lane::Pipeline).reserve(order.size() * 2);

    std::vector<std::size_t> last_gradient(layers_.num_stages(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (makes_weight_gradient(order[i].type)) last_gradient[order[i].stage.index()] = i;
    }
    require_gatherable(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      add_receive(rank, order[i], program);
      const bool completes = last_gradient[order[i].stage.index()] == i;
      const bool is_reduced = completes || (scatters_rounds() && makes_weight_gradient(order[i].type));
      const bool is_gathered = gathers_rounds() && order[i].type == ActionType::Forward;
      if ((is_reduced || is_gathered) && num_holders_[order[i].stage.index()] > 1) {
        add_in_buckets(order[i], compute);
      } else {
        compute.append(order[i]);
      }
      add_send(rank, order[i], program);
    }
    add_end_of_step(rank, program);
    for (LaneProgram& lane : program.lanes) lane.end_step();
  }

  bool begins(const Action& action) const { return action.first_layer == layers_.first(action.stage); }
  bool ends(const Action& action) const { return action.end_layer == layers_.end(action.stage); }

  void add_receive(Rank rank, const Action& action, RankProgram& program) {
    const StageId stage = action.stage;
    const MicroBatchId micro_batch = action.micro_batch;
    if (action.type == ActionType::Forward && begins(action) && stage.value > 0 &&
        is_remote(rank, stage.index() - 1, micro_batch)) {
      program.lane(Lane::Pipeline).append(layers_.whole(ActionType::ReceiveActivation, stage, micro_batch));
    }
    if (is_backward(action.type) && ends(action) && is_remote(rank, stage.index() + 1, micro_batch)) {
      program.lane(Lane::Pipeline).append(layers_.whole(ActionType::ReceiveGradient, stage, micro_batch));
    }
  }

  void add_send(Rank rank, const Action& action, RankProgram& program) {
    const StageId stage = action.stage;
    const MicroBatchId micro_batch = action.micro_batch;
    if (action.type == ActionType::Forward && ends(action) &&
        is_remote(rank, stage.index() + 1, micro_batch)) {
      program.lane(Lane::Pipeline).append(layers_.whole(ActionType::SendActivation, stage, micro_batch));
    }
    if (is_backward(action.type) && begins(action) && stage.value > 0 &&
        is_remote(rank, stage.index() - 1, micro_batch)) {
      program.lane(Lane::Pipeline).append(layers_.whole(ActionType::SendGradient, stage, micro_batch));
    }
  }

  /// The parts of a stage that are reduced apart, from the last layers to the first, as backward completes
  /// them.
  std::vector<std::pair<LayerId, LayerId>> buckets(StageId stage) const {
    const std::size_t num_layers = layers_.count(stage);
    const std::size_t num_buckets = std::min(std::max<std::size_t>(draft_.num_buckets, 1), num_layers);
    std::vector<std::pair<LayerId, LayerId>> parts;
    for (std::size_t bucket = num_buckets; bucket > 0; --bucket) {
      const std::size_t first = layers_.first(stage).index();
      parts.emplace_back(LayerId::at(first + num_layers * (bucket - 1) / num_buckets),
                         LayerId::at(first + num_layers * bucket / num_buckets));
    }
    return parts;
  }

  void add_in_buckets(const Action& action, LaneProgram& compute) const {
    std::vector<std::pair<LayerId, LayerId>> parts = buckets(action.stage);
    if (action.type == ActionType::Forward) std::reverse(parts.begin(), parts.end());
    for (auto [first, end] : parts) {
      if (draft_.problem.has_tied_halves && end == layers_.end(action.stage)) {
        // The tied parameter's half goes on its way right behind the last layer.
        const LayerId last = LayerId::at(end.index() - 1);
        append_part(action, last, end, compute);
        end = last;
      }
      append_part(action, first, end, compute);
    }
  }

  /// What an action does for some layers, if it has them.
  static void append_part(Action action, LayerId first, LayerId end, LaneProgram& compute) {
    action.first_layer = std::max(first, action.first_layer);
    action.end_layer = std::min(end, action.end_layer);
    if (action.first_layer < action.end_layer) compute.append(action);
  }

  bool scatters_rounds() const { return draft_.problem.sharding >= Sharding::Gradients; }
  bool gathers_rounds() const { return draft_.problem.sharding == Sharding::Parameters; }

  /// Parameters are gathered in the order of passes that go through the layers and back.
  void require_gatherable(const std::vector<Action>& order) const {
    if (!gathers_rounds()) return;
    MicroBatchId begun = MicroBatchId::none();
    LayerId next_end = {};
    for (const Action& action : order) {
      if (num_holders_[action.stage.index()] == 1) continue;
      const bool is_forward = action.type == ActionType::Forward;
      const bool follows = is_forward ? next_end == LayerId{}
                                      : action.micro_batch == begun && action.end_layer == next_end &&
                                            action.type != ActionType::InputGradient &&
                                            action.type != ActionType::WeightGradient;
      base::require(follows,
                    "parameters are sharded where the backward of a micro-batch comes right behind its "
                    "forward; schedule {} has another order",
                    draft_.name);
      if (is_forward) begun = action.micro_batch;
      if (is_forward) next_end = action.end_layer;
      if (action.type == ActionType::Backward) next_end = action.first_layer;
    }
  }

  void add_round(ActionType type, StageId stage, std::uint32_t round,
                 const std::pair<LayerId, LayerId>& bucket, LaneProgram& data) const {
    data.append({.type = type,
                 .stage = stage,
                 .micro_batch = {round},
                 .first_layer = bucket.first,
                 .end_layer = bucket.second});
  }

  void add_rounds(Rank rank, StageId stage, LaneProgram& data) {
    if (num_holders_[stage.index()] == 1) return;
    const std::vector<std::pair<LayerId, LayerId>> parts = buckets(stage);
    std::uint32_t round = 0;
    for (std::size_t m = 0; m < draft_.problem.num_micro_batches; ++m) {
      if (runner(stage, MicroBatchId::at(m)) != rank) continue;
      if (gathers_rounds()) add_forward_gathers(stage, round, parts, data);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        // Compute waits for the next layers first.
        const std::size_t next = i + Dataflow::kBucketPlaces;
        if (gathers_rounds() && next + 1 < parts.size())
          add_round(ActionType::GatherBackward, stage, round, parts[next], data);
        add_round(ActionType::ReduceScatterRound, stage, round, parts[i], data);
      }
      ++round;
    }
  }

  /// The first layers once for all micro-batches; of the others, those whose places have been used otherwise
  /// (Dataflow::kBucketPlaces).
  void add_forward_gathers(StageId stage, std::uint32_t round,
                           const std::vector<std::pair<LayerId, LayerId>>& parts, LaneProgram& data) const {
    if (round == 0) {
      data.append({.type = ActionType::GatherParameters,
                   .stage = stage,
                   .first_layer = parts.back().first,
                   .end_layer = parts.back().second});
    }
    for (std::size_t i = parts.size() - 1; i-- > 0;) {
      if (round == 0 || i + Dataflow::kBucketPlaces + 1 < parts.size())
        add_round(ActionType::GatherForward, stage, round, parts[i], data);
    }
  }

  void add_collective(ActionType type, StageId stage, LaneProgram& data) const {
    if (num_holders_[stage.index()] == 1) return;
    for (const auto& [first, end] : buckets(stage)) {
      data.append({.type = type, .stage = stage, .first_layer = first, .end_layer = end});
    }
  }

  void add_end_of_step(Rank rank, RankProgram& program) {
    LaneProgram& data = program.lane(Lane::DataParallel);
    const bool is_sharded = schedule::is_sharded(draft_.problem);
    const bool has_tied = num_tied_ranks_ > 1 && holds_tied(rank);
    if (has_tied && draft_.problem.has_tied_halves) {
      data.append({.type = ActionType::GatherTiedRows});
      data.append({.type = is_sharded ? ActionType::ReduceScatterTiedOutput : ActionType::ReduceTiedOutput});
    }
    // All holders of a stage, also those that computed nothing for it, meet in one order of stages: the one
    // in which backwards complete them.
    for (auto stage = program.stages.rbegin(); stage != program.stages.rend(); ++stage) {
      if (scatters_rounds()) {
        add_rounds(rank, *stage, data);
        continue;
      }
      add_collective(is_sharded ? ActionType::ReduceScatterGradient : ActionType::ReduceGradient, *stage,
                     data);
    }
    if (has_tied) data.append({.type = ActionType::ReduceTied});
    LaneProgram& compute = program.lane(Lane::Compute);
    for (auto stage = program.stages.rbegin(); stage != program.stages.rend(); ++stage) {
      compute.append(layers_.whole(ActionType::SquareGradient, *stage));
    }
    data.append({.type = ActionType::Agree});
    if (is_sharded && draft_.problem.has_tensor_norms) add_tensor_norms(program);
    for (const StageId stage : program.stages) {
      compute.append(layers_.whole(ActionType::Update, stage));
      if (is_sharded && !gathers_rounds()) add_collective(ActionType::GatherParameters, stage, data);
    }
    if (has_tied && draft_.problem.has_tied_halves && is_sharded)
      data.append({.type = ActionType::GatherTied});
  }

  void add_tensor_norms(RankProgram& program) const {
    for (const StageId stage : program.stages) {
      if (num_holders_[stage.index()] == 1) continue;
      program.lane(Lane::Compute).append(layers_.whole(ActionType::UpdateMoments, stage));
      program.lane(Lane::DataParallel).append(layers_.whole(ActionType::ReduceTensorNorms, stage));
    }
  }

  bool holds_tied(Rank rank) const {
    const StageId last = StageId::at(layers_.num_stages() - 1);
    const std::vector<StageId>& held = draft_.stages[rank.index()];
    return draft_.problem.has_tied_parameters && std::any_of(held.begin(), held.end(), [last](StageId stage) {
             return stage == StageId{} || stage == last;
           });
  }

  StepDraft draft_;
  StageLayers layers_;
  std::vector<Rank> runners_;
  std::vector<std::size_t> num_holders_;
  std::size_t num_tied_ranks_ = 0;
};

}  // namespace

Schedule complete_step(StepDraft draft) {
  Schedule schedule = StepCompletion(std::move(draft)).run();
  base::check(order_messages(schedule), "a generator's order of computations must run: {}", schedule.name);
  return schedule;
}

}  // namespace plenum::schedule
