#include "plenum/schedule/simulate/message_order.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plenum/schedule/check/check.h"
#include "plenum/schedule/fill/fill.h"
#include "plenum/schedule/fill/kfac_filler.h"
#include "plenum/schedule/simulate/issue_order.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/schedule/pipeline_figures.h"
#include "tests/support/fitted_options.h"
#include "tests/support/function_costs.h"
#include "tests/support/kfac_schedule.h"

namespace plenum::schedule {
namespace {

std::vector<GeneratorOptions> sizes() {
  std::vector<GeneratorOptions> options;
  for (const std::size_t depth : {2, 4, 6}) {
    for (const std::size_t num_micro_batches : {1, 4, 9}) {
      for (const std::size_t num_replicas : {1, 2}) {
        options.push_back({.depth = depth,
                           .num_micro_batches = num_micro_batches,
                           .num_replicas = num_replicas,
                           .stage_layers = {1},
                           .has_tied_parameters = true});
      }
    }
  }
  return options;
}

/// The lanes before they are sorted, as computations need and make messages.
Schedule scrambled(Schedule schedule) {
  for (RankProgram& rank : schedule.ranks) {
    LaneProgram& lane = rank.lane(Lane::Pipeline);
    const std::vector<Action> actions(lane.actions().rbegin(), lane.actions().rend());
    lane = {};
    for (const Action& action : actions) lane.append(action);
    lane.end_step();
  }
  return schedule;
}

TEST(MessageOrder, LetsEveryGeneratedScheduleRunWhateverItsLanesWere) {
  for (const Generator& generator : all_generators()) {
    for (const GeneratorOptions& options : sizes()) {
      if (!test::fits(generator, options)) continue;
      SCOPED_TRACE(fmt::format("{} {}x{}x{}", generator.name, options.depth, options.num_micro_batches,
                               options.num_replicas));
      const Schedule schedule = generator.generate(options);
      Schedule sorted = scrambled(schedule);
      ASSERT_TRUE(order_messages(sorted));
      EXPECT_EQ(sorted, schedule);
      EXPECT_TRUE(check(sorted).violations.empty());
    }
  }
}

TEST(MessageOrder, LosesNoTimeWhereMessagesTakeNone) {
  for (const Generator& generator : all_generators()) {
    for (const GeneratorOptions& options : sizes()) {
      if (!test::fits(generator, options)) continue;
      for (const double backward : {1.0, 1.69, 2.0, 3.0}) {
        SCOPED_TRACE(
            fmt::format("{} {}x{} {}", generator.name, options.depth, options.num_micro_batches, backward));
        const UnitCosts costs(
            {.forward = 1, .input_gradient = 0.5 * backward, .weight_gradient = 0.5 * backward});
        Schedule schedule = generator.generate(options);
        ASSERT_TRUE(order_messages(schedule, costs));
        const Dataflow dataflow(schedule);
        const ReplayResult lanes = replay(schedule, dataflow, costs, 2);
        ASSERT_TRUE(lanes.blocked.empty());
        EXPECT_NEAR(lanes.end, replay(schedule, dataflow, costs, 2, MessageOrder::Free).end, 1e-9);
      }
    }
  }
}

TEST(MessageOrder, IsRightWithoutCosts) {
  const test::FunctionCosts free([](Rank, const Action&) { return 0.0; });
  for (const Generator& generator : all_generators()) {
    for (const GeneratorOptions& options : sizes()) {
      if (!test::fits(generator, options)) continue;
      Schedule schedule = scrambled(generator.generate(options));
      ASSERT_TRUE(order_messages(schedule, free));
      EXPECT_TRUE(check(schedule).violations.empty()) << generator.name;
    }
  }
}

TEST(MessageOrder, LeavesAScheduleThatCannotRunAsItIs) {
  const Schedule schedule = parse_schedule(R"(plenum-schedule 1
layers 1 1
micro-batches 1
rank 0 holds 0
rank 1 holds 1
0 compute: B0.0 F0.0 U0
0 pipe: RB0.0 SF0.0
0 data: N
1 compute: F1.0 B1.0 U1
1 pipe: SB1.0 RF1.0
1 data: N
)",
                                           "test");
  Schedule changed = schedule;
  EXPECT_FALSE(order_messages(changed));
  EXPECT_EQ(changed, schedule);
  EXPECT_FALSE(issue_order(schedule).has_value());
}

/// Ranks that compute on one thread and do all else on another, which waits for each message and collective
/// to end before it turns to the next.
class OneCommunicationThread {
 public:
  OneCommunicationThread(const Schedule& schedule, const std::vector<std::vector<IssuedAction>>& orders,
                         std::size_t num_cycles)
      : schedule_(schedule), dataflow_(schedule), orders_(orders), num_cycles_(num_cycles) {
    threads_.resize(schedule.ranks.size());
    made_.resize(schedule.ranks.size());
  }

  /// Whether all comes to its end.
  bool run() {
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::size_t rank = 0; rank < threads_.size(); ++rank) {
        while (compute(rank)) has_moved = true;
        while (communicate(rank)) has_moved = true;
      }
    }
    return std::all_of(threads_.begin(), threads_.end(), [this](const Threads& threads) {
      return threads.num_computed == num_cycles_ * threads.compute_length &&
             threads.num_issued == num_cycles_ * threads.issue_length;
    });
  }

 private:
  struct Threads {
    std::size_t num_computed = 0;
    std::size_t num_issued = 0;
    std::size_t compute_length = 0;
    std::size_t issue_length = 0;
  };

  bool is_ready(std::size_t rank, const Action& action, std::size_t step) {
    dataflow_.inputs(Rank::at(rank), action, values_);
    return std::all_of(values_.begin(), values_.end(), [&](const ValueRef& value) {
      return value.age > step || made_[rank].contains({value.index, step - value.age});
    });
  }

  void finish(std::size_t rank, const Action& action, std::size_t step) {
    dataflow_.outputs(Rank::at(rank), action, values_);
    for (const ValueRef& value : values_) {
      if (value.age <= step) made_[rank].insert({value.index, step - value.age});
    }
  }

  std::size_t step_of(const LaneProgram& lane, std::size_t cycle, std::size_t position) const {
    return cycle * schedule_.num_steps() + lane.step_of(position);
  }

  bool compute(std::size_t rank) {
    const LaneProgram& lane = schedule_.ranks[rank].lane(Lane::Compute);
    Threads& threads = threads_[rank];
    threads.compute_length = lane.actions().size();
    if (threads.num_computed == num_cycles_ * threads.compute_length) return false;
    const std::size_t position = threads.num_computed % threads.compute_length;
    const std::size_t step = step_of(lane, threads.num_computed / threads.compute_length, position);
    if (!is_ready(rank, lane.actions()[position], step)) return false;
    finish(rank, lane.actions()[position], step);
    ++threads.num_computed;
    return true;
  }

  /// The action at which a rank's communication thread is, and its step; nothing at the end.
  std::optional<std::pair<Action, std::size_t>> head(std::size_t rank) {
    Threads& threads = threads_[rank];
    threads.issue_length = orders_[rank].size();
    if (threads.num_issued == num_cycles_ * threads.issue_length) return std::nullopt;
    const IssuedAction& issued = orders_[rank][threads.num_issued % threads.issue_length];
    const LaneProgram& lane = schedule_.ranks[rank].lane(issued.lane);
    return std::pair(lane.actions()[issued.position],
                     step_of(lane, threads.num_issued / threads.issue_length, issued.position));
  }

  bool communicate(std::size_t rank) {
    const auto own = head(rank);
    if (!own) return false;
    std::vector<std::pair<std::size_t, Action>> parts;
    if (traits_of(own->first.type).lane == Lane::Pipeline) {
      parts = {{rank, own->first}, {dataflow_.peer(own->first).index(), dataflow_.counterpart(own->first)}};
    } else {
      for (const Rank member : dataflow_.group(own->first)) parts.emplace_back(member.index(), own->first);
    }
    for (const auto& [member, action] : parts) {
      if (head(member) != std::pair(action, own->second) || !is_ready(member, action, own->second))
        return false;
    }
    for (const auto& [member, action] : parts) {
      finish(member, action, own->second);
      ++threads_[member].num_issued;
    }
    return true;
  }

  const Schedule& schedule_;
  Dataflow dataflow_;
  const std::vector<std::vector<IssuedAction>>& orders_;
  std::size_t num_cycles_;
  std::vector<Threads> threads_;
  std::vector<std::set<std::pair<std::uint32_t, std::size_t>>> made_;
  std::vector<ValueRef> values_;
};

bool runs_on_one_communication_thread(const Schedule& schedule) {
  const auto orders = issue_order(schedule);
  return orders && OneCommunicationThread(schedule, *orders, 2).run();
}

TEST(IssueOrder, LetsOneThreadOfARankDoAllCommunication) {
  for (const Generator& generator : all_generators()) {
    for (GeneratorOptions options : sizes()) {
      if (!test::fits(generator, options) || options.depth > 4) continue;
      options.stage_layers = {2};
      options.num_buckets = 2;
      options.sharding = Sharding::Optimizer;
      EXPECT_TRUE(runs_on_one_communication_thread(generator.generate(options))) << generator.name;
    }
  }
  EXPECT_TRUE(runs_on_one_communication_thread(parse_schedule(test::kKfacSchedule, "kfac")));
}

TEST(IssueOrder, HoldsInFilledSchedules) {
  for (const std::string_view name : pipeline_names()) {
    const Schedule base = generate(name, {.depth = 4,
                                          .num_micro_batches = 4,
                                          .num_replicas = 2,
                                          .stage_layers = {2},
                                          .has_tied_parameters = true});
    const FillResult filled = fill(base, KfacFiller(2), test::FunctionCosts([](Rank, const Action& action) {
                                     const double layers = action.end_layer.value - action.first_layer.value;
                                     switch (action.type) {
                                       case ActionType::Forward:
                                         return layers;
                                       case ActionType::Backward:
                                         return 2 * layers;
                                       case ActionType::InputGradient:
                                       case ActionType::WeightGradient:
                                         return layers;
                                       case ActionType::CurvatureA:
                                       case ActionType::CurvatureB:
                                         return 0.1;
                                       case ActionType::Invert:
                                         return 0.5 / action.num_pieces;
                                       default:
                                         return 0.0;
                                     }
                                   }));
    EXPECT_TRUE(check(filled.schedule).violations.empty()) << name;
    EXPECT_TRUE(runs_on_one_communication_thread(filled.schedule)) << name;
  }
}

TEST(IssueOrder, IsNotAnyMergeOfLanes) {
  const Schedule schedule = generate("1f1b", {.depth = 4, .num_micro_batches = 8, .stage_layers = {1}});
  auto orders = issue_order(schedule);
  ASSERT_TRUE(orders.has_value());
  // Agreement before the messages of a step waits for gradients that these bring.
  for (std::vector<IssuedAction>& order : *orders) {
    std::stable_partition(order.begin(), order.end(),
                          [](const IssuedAction& issued) { return issued.lane == Lane::DataParallel; });
  }
  EXPECT_FALSE(OneCommunicationThread(schedule, *orders, 2).run());
}

}  // namespace
}  // namespace plenum::schedule
