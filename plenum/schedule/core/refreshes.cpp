#include "plenum/schedule/core/refreshes.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

bool is_of_refresh(ActionType type) {
  return is_curvature(type) || is_inversion(type) || type == ActionType::ReduceCurvature ||
         type == ActionType::InverseRoot;
}

}  // namespace

Refreshes::Refreshes(const Schedule& schedule)
    : num_steps_(std::max<std::size_t>(schedule.num_steps(), 1)),
      takes_statistics_(StageLayers(schedule.problem).total(), std::vector<bool>(num_steps_)),
      is_drained_(num_steps_, true) {
  std::vector<std::vector<std::size_t>> last_age(takes_statistics_.size(),
                                                 std::vector<std::size_t>(num_steps_));
  for (const RankProgram& rank : schedule.ranks) {
    for (const LaneProgram& lane : rank.lanes) {
      for (std::size_t step = 0; step < lane.num_steps(); ++step) {
        for (const Action& action : lane.step(step)) {
          if (!is_of_refresh(action.type)) continue;
          has_pieces_ = has_pieces_ || action.num_pieces > 1;
          const std::size_t of =
              (step + (action.age / num_steps_ + 1) * num_steps_ - action.age) % num_steps_;
          for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
            takes_statistics_[layer][of] = true;
            last_age[layer][of] = std::max<std::size_t>(last_age[layer][of], action.age);
          }
          max_age_ = std::max<std::size_t>(max_age_, action.age);
          for (std::size_t i = 0; i < std::min<std::size_t>(action.age, num_steps_); ++i)
            is_drained_[(step + num_steps_ - i) % num_steps_] = false;
        }
      }
    }
  }
  // They take places in turn: while one is under way, all that begin need others.
  for (std::size_t layer = 0; layer < takes_statistics_.size(); ++layer) {
    for (std::size_t step = 0; step < num_steps_; ++step) {
      std::size_t num_begun = 0;
      for (std::size_t later = step; later <= step + last_age[layer][step]; ++later)
        num_begun += takes_statistics_[layer][later % num_steps_] ? 1 : 0;
      num_places_ = std::max(num_places_, num_begun);
    }
  }
}

std::size_t Refreshes::place_of(std::uint64_t step, LayerId layer) const {
  const std::vector<bool>& takes = takes_statistics_[layer.index()];
  const auto in_cycle = static_cast<std::size_t>(step % num_steps_);
  base::check(takes_statistics(step, layer), "step {} takes no statistics of layer {}", step, layer.value);
  const auto count = [&](std::size_t end) {
    return static_cast<std::uint64_t>(
        std::count(takes.begin(), takes.begin() + static_cast<std::ptrdiff_t>(end), true));
  };
  return static_cast<std::size_t>((step / num_steps_ * count(num_steps_) + count(in_cycle)) % num_places_);
}

}  // namespace plenum::schedule
