#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

/// Which messages have been seen in a step.
class Mailbox {
 public:
  Mailbox(std::size_t num_stages, std::size_t num_micro_batches)
      : num_micro_batches_(num_micro_batches), seen_(num_stages * num_micro_batches, 0) {}

  void insert(const Action& action) { seen_[index(action)] |= bit(action); }
  void erase(const Action& action) { seen_[index(action)] = 0; }
  bool contains(const Action& action) const { return (seen_[index(action)] & bit(action)) != 0; }

 private:
  static constexpr std::uint8_t bit(const Action& action) {
    return static_cast<std::uint8_t>(
        1u << (static_cast<unsigned>(action.type) - static_cast<unsigned>(ActionType::SendActivation)));
  }
  std::size_t index(const Action& action) const {
    return action.stage.index() * num_micro_batches_ + action.micro_batch.index();
  }

  std::size_t num_micro_batches_;
  std::vector<std::uint8_t> seen_;
};

template <typename Visit>
void for_each_message(const Schedule& schedule, std::size_t step, Visit visit) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for_each_action_of(schedule, Rank::at(rank), Lane::Pipeline, step, visit);
  }
}

}  // namespace

void find_unmatched_messages(RuleContext& context) {
  const Schedule& schedule = context.schedule;
  Mailbox mailbox(schedule.num_stages(), schedule.problem.num_micro_batches);
  for (std::size_t step = 0; step < schedule.num_steps(); ++step) {
    for_each_message(schedule, step,
                     [&](const ActionPlace&, const Action& action) { mailbox.insert(action); });
    for_each_message(schedule, step, [&](const ActionPlace& place, const Action& action) {
      const Action other = context.dataflow.counterpart(action);
      if (context.is_full() || mailbox.contains(other)) return;
      context.add(place, fmt::format("there is no {} on rank {} in this step",
                                     action_text(other, context.dataflow.layers()),
                                     context.dataflow.peer(action).value));
    });
    for_each_message(schedule, step,
                     [&](const ActionPlace&, const Action& action) { mailbox.erase(action); });
  }
}

}  // namespace plenum::schedule
