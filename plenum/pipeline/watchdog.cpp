#include "plenum/pipeline/watchdog.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plenum/schedule/core/action_text.h"

namespace plenum::pipeline {

using schedule::kNumLanes;
using schedule::Lane;

namespace {

/// A message that names every lane of a thousand ranks helps nobody.
constexpr std::size_t kMostNamed = 8;

}  // namespace

Watchdog::Watchdog(std::span<const std::unique_ptr<RankExecutor>> ranks, Limit limit)
    : ranks_(ranks), limit_(limit), views_(ranks.size()) {
  const Clock::time_point now = Clock::now();
  for (auto& lanes : views_) {
    for (LaneView& view : lanes) view.moved = now;
  }
}

Watchdog::Limit Watchdog::limit_after(std::chrono::duration<double> longest, Limit limit) {
  if (longest.count() == 0) return limit;
  return std::min(limit, std::max(kLeast, std::chrono::duration_cast<Limit>(kUnusual * longest)));
}

std::optional<Failure> Watchdog::look(Clock::time_point now) {
  if (now - last_look_ > kLongestLook) {
    for (auto& lanes : views_) {
      for (LaneView& view : lanes) view.moved += now - last_look_;
    }
  }
  last_look_ = now;
  Clock::time_point last_move = Clock::time_point::min();
  const RankExecutor* waiting = nullptr;
  Lane waiting_lane{};
  bool waits_elsewhere = false;
  bool works = false;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::size_t i = 0; i < kNumLanes; ++i) {
      const Lane lane = static_cast<Lane>(i);
      const LaneProgress& progress = ranks_[rank]->progress(lane);
      LaneView& view = views_[rank][i];
      const LaneState state = progress.state.load(std::memory_order_acquire);  // before num_moves
      if (const std::uint64_t num_moves = progress.num_moves; num_moves != view.num_moves) {
        view = {num_moves, now};
      }
      if (state == LaneState::Ended) continue;
      last_move = std::max(last_move, view.moved);
      if (state == LaneState::Works) {
        works = true;
        const Limit limit = limit_after(std::chrono::duration<double>(progress.longest_seconds), limit_);
        if (now - view.moved < limit) continue;
        return hang_at(*ranks_[rank], lane, fmt::format("hangs: it has not ended for {} ms", limit.count()));
      }
      // Inputs are missing because some lane of the same rank waits for another, or for a device: that one
      // says more.
      const bool is_elsewhere = state == LaneState::AwaitsRanks || state == LaneState::AwaitsDevice;
      if (waiting == nullptr || (is_elsewhere && !waits_elsewhere)) {
        waiting = ranks_[rank].get();
        waiting_lane = lane;
        waits_elsewhere = is_elsewhere;
      }
    }
  }
  if (works || waiting == nullptr || now - last_move < limit_) return std::nullopt;
  return hang_at(*waiting, waiting_lane,
                 fmt::format("waits for {}, and no rank has got on for {} ms",
                             waiting->awaited_by(waiting_lane), limit_.count()));
}

Failure Watchdog::hang_at(const RankExecutor& rank, Lane lane, std::string message) const {
  message += describe_waiting(&rank, lane);
  Failure failure = rank.failure_at(lane, std::move(message));
  failure.is_hang = true;
  return failure;
}

std::string Watchdog::describe_waiting(const RankExecutor* except, Lane except_lane) const {
  std::string text;
  std::size_t num_waiting = 0;
  for (const std::unique_ptr<RankExecutor>& rank : ranks_) {
    for (std::size_t i = 0; i < kNumLanes; ++i) {
      const Lane lane = static_cast<Lane>(i);
      const LaneState state = rank->progress(lane).state;
      if (state == LaneState::Ended || state == LaneState::Works) continue;
      if (rank.get() == except && lane == except_lane) continue;
      if (++num_waiting > kMostNamed) continue;
      const Failure at = rank->failure_at(lane, {});
      text += fmt::format("; rank {}, {}, step {}, {} waits for {}", at.rank.value, schedule::lane_name(lane),
                          at.step, at.action, rank->awaited_by(lane));
    }
  }
  if (num_waiting > kMostNamed) text += fmt::format("; and {} more lanes wait", num_waiting - kMostNamed);
  return text;
}

}  // namespace plenum::pipeline
