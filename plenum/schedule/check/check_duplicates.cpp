#include <map>

#include <fmt/format.h>

#include "plenum/schedule/check/check_rules.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {
namespace {

/// Which values of the cycle have been made, rank by rank.
class MadeValues {
 public:
  MadeValues(const Schedule& schedule, const Dataflow& dataflow)
      : num_steps_(schedule.num_steps()), is_made_(schedule.ranks.size()) {
    for (std::size_t rank = 0; rank < is_made_.size(); ++rank) {
      is_made_[rank].resize(dataflow.num_values(Rank::at(rank)) * num_steps_);
    }
  }

  /// False if it was there already.
  bool insert(Rank rank, std::uint32_t value_index, std::size_t step) {
    const std::size_t bit = value_index * num_steps_ + step;
    if (is_made_[rank.index()][bit]) return false;
    is_made_[rank.index()][bit] = true;
    return true;
  }

 private:
  std::size_t num_steps_;
  std::vector<std::vector<bool>> is_made_;
};

std::string describe_first(const RuleContext& context, const ActionPlace& place, const ValueRef& value) {
  const std::optional<Maker> first = find_makers(context, place.rank, place.step, {&value, 1}).front();
  if (!first || first->place.position == place.position) return {};
  return fmt::format(", after {}", describe_action(context, first->place));
}

/// In how many pieces the inverse of a linear map is computed, for a step of the cycle.
class PieceCounts {
 public:
  /// Gives the number that the first piece named; `action` is an inversion in `step`.
  std::uint8_t agree(const Action& action, std::size_t value_step) {
    const Key key{action.first_layer, action.factor, value_step};
    return counts_.try_emplace(key, action.num_pieces).first->second;
  }

 private:
  using Key = std::tuple<LayerId, std::uint16_t, std::size_t>;
  std::map<Key, std::uint8_t> counts_;
};

}  // namespace

void find_duplicates(RuleContext& context) {
  const Schedule& schedule = context.schedule;
  MadeValues made(schedule, context.dataflow);
  PieceCounts pieces;
  std::vector<ValueRef> values;
  for_each_action(schedule, [&](const ActionPlace& place, const Action& action) {
    if (context.is_full()) return;
    context.dataflow.outputs(place.rank, action, values);
    for (const ValueRef& value : values) {
      const std::size_t step = data_step(place.step, value.age, schedule.num_steps());
      if (made.insert(place.rank, value.index, step)) continue;
      context.add(place,
                  fmt::format("makes {} a second time{}", context.dataflow.describe(place.rank, value.index),
                              describe_first(context, place, value)));
      break;
    }
    if (!traits_of(action.type).is_splittable) return;
    const std::size_t step = data_step(place.step, action.age, schedule.num_steps());
    const std::uint8_t num_pieces = pieces.agree(action, step);
    if (num_pieces != action.num_pieces) {
      context.add(place, fmt::format("is cut into {} pieces, but the others of this inverse into {}",
                                     action.num_pieces, num_pieces));
    }
  });
}

}  // namespace plenum::schedule
