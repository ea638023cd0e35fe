#include "plenum/schedule/check/activation_peaks.h"

#include <algorithm>
#include <limits>

namespace plenum::schedule {
namespace {

/// The activations of one layer of one micro-batch in one step of the cycle, as positions of the compute
/// lane; positions go on counting in the cycles that follow.
struct Lifetime {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Adds up how many intervals cover each position of a cycle that repeats for ever.
class CyclicCover {
 public:
  explicit CyclicCover(std::size_t length) : length_(length), change_(length + 1, 0) {}

  void add(const Lifetime& life) {
    const std::size_t duration = life.end - life.begin;
    everywhere_ += duration / length_;
    const std::size_t rest = duration % length_;
    const std::size_t end = life.begin + rest;
    ++change_[life.begin];
    if (end <= length_) {
      --change_[end];
    } else {
      --change_[length_];
      ++change_[0];
      --change_[end - length_];
    }
  }

  std::size_t peak() const {
    std::int64_t level = 0;
    std::int64_t greatest = 0;
    for (const std::int64_t change : change_) {
      level += change;
      greatest = std::max(greatest, level);
    }
    return everywhere_ + static_cast<std::size_t>(greatest);
  }

 private:
  std::size_t length_;
  std::size_t everywhere_ = 0;
  std::vector<std::int64_t> change_;
};

class RankPeak {
 public:
  RankPeak(const Schedule& schedule, const Dataflow& dataflow, Rank rank, KeptFor kept_for)
      : schedule_(schedule),
        layers_(dataflow.layers()),
        compute_(schedule.ranks[rank.index()].lane(Lane::Compute)),
        kept_for_(kept_for) {
    const std::vector<StageId>& stages = schedule.ranks[rank.index()].stages;
    for (const StageId stage : stages) {
      slot_of_stage_.push_back({stage, num_layers_});
      num_layers_ += layers_.count(stage);
    }
    std::size_t end = 0;
    for (const Action& action : compute_.actions()) {
      if (!traits_of(action.type).has_micro_batch) continue;
      first_micro_batch_ = std::min(first_micro_batch_, action.micro_batch.index());
      end = std::max(end, action.micro_batch.index() + 1);
    }
    num_micro_batches_ = end - std::min(first_micro_batch_, end);
  }

  std::size_t run() {
    lives_.assign(schedule_.num_steps() * num_micro_batches_ * num_layers_, {});
    for (std::size_t step = 0; step < schedule_.num_steps(); ++step) {
      std::size_t position = compute_.step_begin(step);
      for (const Action& action : compute_.step(step)) visit(action, step, position++);
    }
    CyclicCover cover(std::max<std::size_t>(compute_.actions().size(), 1));
    for (const Lifetime& life : lives_) {
      if (life.end > life.begin) cover.add(life);
    }
    return cover.peak();
  }

 private:
  void visit(const Action& action, std::size_t step, std::size_t position) {
    const bool recomputes = schedule_.problem.recomputation == Recomputation::Full;
    switch (action.type) {
      case ActionType::Forward:
        if (!recomputes) begin(action, step, position);
        break;
      case ActionType::Recompute:
        begin(action, step, position);
        break;
      case ActionType::Backward:
      case ActionType::WeightGradient:
        extend(action, step, position + 1);
        break;
      case ActionType::CurvatureA:
      case ActionType::CurvatureB:
        if (kept_for_ == KeptFor::Curvature) extend(action, step, position + 1);
        break;
      default:
        break;
    }
  }

  void begin(const Action& action, std::size_t step, std::size_t position) {
    for_each_life(action, step, [position](Lifetime& life) { life.begin = position; });
  }

  /// What an earlier cycle made is looked at as if this one had: then its reader stands in a later cycle.
  void extend(const Action& action, std::size_t step, std::size_t end) {
    const std::size_t num_steps = schedule_.num_steps();
    const std::size_t cycles = action.age > step ? (action.age - step + num_steps - 1) / num_steps : 0;
    for_each_life(action, step + cycles * num_steps - action.age, [&](Lifetime& life) {
      life.end = std::max(life.end, end + cycles * compute_.actions().size());
    });
  }

  template <typename Change>
  void for_each_life(const Action& action, std::size_t step, Change change) {
    const auto slot =
        std::find_if(slot_of_stage_.begin(), slot_of_stage_.end(),
                     [&](const StageSlot& candidate) { return candidate.stage == action.stage; });
    const std::size_t row = step * num_micro_batches_ + action.micro_batch.index() - first_micro_batch_;
    const std::size_t base = row * num_layers_ + slot->first_layer - layers_.first(action.stage).index();
    for (std::size_t layer = action.first_layer.index(); layer < action.end_layer.index(); ++layer) {
      change(lives_[base + layer]);
    }
  }

  struct StageSlot {
    StageId stage;
    std::size_t first_layer = 0;  ///< among those of the rank
  };

  const Schedule& schedule_;
  const StageLayers& layers_;
  const LaneProgram& compute_;
  KeptFor kept_for_;
  std::vector<StageSlot> slot_of_stage_;
  std::size_t num_layers_ = 0;
  std::size_t first_micro_batch_ = std::numeric_limits<std::size_t>::max();
  std::size_t num_micro_batches_ = 0;
  std::vector<Lifetime> lives_;
};

}  // namespace

std::vector<std::size_t> activation_peaks(const Schedule& schedule, const Dataflow& dataflow,
                                          KeptFor kept_for) {
  std::vector<std::size_t> peaks;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    peaks.push_back(RankPeak(schedule, dataflow, Rank::at(rank), kept_for).run());
  }
  return peaks;
}

}  // namespace plenum::schedule
