#include "plenum/schedule/generate/chimera.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "plenum/base/check.h"
#include "plenum/schedule/generate/generator_options.h"

namespace plenum::schedule {
namespace {

enum Direction : std::uint8_t { kDown, kUp, kNumDirections };

/// One forward or backward of the micro-batch that is `index`-th in its direction.
struct Pass {
  Direction direction = kDown;
  bool is_backward = false;
  std::uint32_t index = 0;
};

/// Finds the order in which every position of one replica works by running it on a clock: whoever is free
/// takes what is ready, forward and backward in turn where both are, of those the oldest micro-batch, of
/// those the later stage. Micro-batches of one direction stay in order, so counts say all that is known.
class TwoWayTraffic {
 public:
  TwoWayTraffic(std::size_t depth, std::size_t num_down, std::size_t num_up, std::size_t backward_time)
      : depth_(depth),
        num_passing_({num_down, num_up}),
        backward_time_(backward_time),
        progress_({std::vector<Progress>(depth), std::vector<Progress>(depth)}),
        positions_(depth) {}

  std::size_t stage_of(std::size_t position, Direction direction) const {
    return direction == kDown ? position : depth_ - 1 - position;
  }

  /// The passes of each position, in order.
  std::vector<std::vector<Pass>> run() {
    std::vector<std::vector<Pass>> orders(depth_);
    std::size_t num_left = 2 * depth_ * (num_passing_[kDown] + num_passing_[kUp]);
    for (std::size_t time = 0; num_left > 0; ++time) {
      for (std::size_t position = 0; position < depth_; ++position) finish(position, time);
      for (std::size_t position = 0; position < depth_; ++position) {
        if (positions_[position].running) continue;
        const std::optional<Pass> pass = choose(position);
        if (!pass) continue;
        begin(position, *pass, time);
        orders[position].push_back(*pass);
        --num_left;
      }
    }
    return orders;
  }

 private:
  /// How many micro-batches of one direction have come how far on one stage.
  struct Progress {
    std::uint32_t begun[2] = {0, 0};  ///< forwards, backwards
    std::uint32_t done[2] = {0, 0};
  };
  struct Position {
    std::optional<Pass> running;
    std::size_t end_time = 0;
    bool was_backward = false;
  };

  void begin(std::size_t position, const Pass& pass, std::size_t time) {
    ++progress_[pass.direction][stage_of(position, pass.direction)].begun[pass.is_backward];
    positions_[position] = {pass, time + (pass.is_backward ? backward_time_ : 1), pass.is_backward};
  }

  void finish(std::size_t position, std::size_t time) {
    Position& place = positions_[position];
    if (!place.running || place.end_time != time) return;
    const Pass& pass = *place.running;
    ++progress_[pass.direction][stage_of(position, pass.direction)].done[pass.is_backward];
    place.running.reset();
  }

  /// How many micro-batches have come to the stage, forward or backward.
  std::size_t num_arrived(Direction direction, std::size_t stage, bool is_backward) const {
    const std::vector<Progress>& stages = progress_[direction];
    if (is_backward) return stage + 1 == depth_ ? stages[stage].done[0] : stages[stage + 1].done[1];
    return stage == 0 ? num_passing_[direction] : stages[stage - 1].done[0];
  }

  std::optional<Pass> choose(std::size_t position) const {
    std::optional<Pass> best;
    const auto rank_of = [&](const Pass& pass) {
      return std::tuple(pass.is_backward == positions_[position].was_backward, pass.index,
                        depth_ - stage_of(position, pass.direction));
    };
    for (const Direction direction : {kDown, kUp}) {
      const std::size_t stage = stage_of(position, direction);
      for (const bool is_backward : {false, true}) {
        const Pass pass{direction, is_backward, progress_[direction][stage].begun[is_backward]};
        if (pass.index == num_arrived(direction, stage, is_backward)) continue;
        if (!best || rank_of(pass) < rank_of(*best)) best = pass;
      }
    }
    return best;
  }

  std::size_t depth_;
  std::array<std::size_t, kNumDirections> num_passing_;
  std::size_t backward_time_;
  std::array<std::vector<Progress>, kNumDirections> progress_;
  std::vector<Position> positions_;
};

/// Up to D micro-batches, an order made for B = F has the least bubble whatever B is. Beyond, one made for
/// the true B fills the middle better.
std::size_t backward_time(const GeneratorOptions& options) {
  if (options.num_micro_batches <= options.depth) return 1;
  return options.recomputation == Recomputation::Full ? 3 : 2;
}

}  // namespace

Schedule generate_chimera(const GeneratorOptions& options) {
  base::require(options.depth % 2 == 0, "schedule chimera needs an even number of stages: {} are asked for",
                options.depth);
  StepDraft draft = begin_draft("chimera", options, options.depth);
  const StageLayers layers(draft.problem);
  const std::size_t num_up = options.num_micro_batches / 2;
  const std::size_t num_down = options.num_micro_batches - num_up;
  TwoWayTraffic traffic(options.depth, num_down, num_up, backward_time(options));
  const std::vector<std::vector<Pass>> orders = traffic.run();
  for (std::size_t rank = 0; rank < draft.compute.size(); ++rank) {
    const std::size_t position = rank % options.depth;
    const std::size_t first = rank / options.depth * options.num_micro_batches;
    draft.stages[rank] = {StageId::at(position), StageId::at(options.depth - 1 - position)};
    for (const Pass& pass : orders[position]) {
      const StageId stage = StageId::at(traffic.stage_of(position, pass.direction));
      const MicroBatchId micro_batch =
          MicroBatchId::at(first + (pass.direction == kUp ? num_down : 0) + pass.index);
      if (pass.is_backward) {
        add_backward(layers, draft.problem, stage, micro_batch, draft.compute[rank]);
      } else {
        add_forward(layers, stage, micro_batch, draft.compute[rank]);
      }
    }
  }
  return complete_step(std::move(draft));
}

}  // namespace plenum::schedule
