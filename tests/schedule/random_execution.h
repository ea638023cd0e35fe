#pragma once

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "plenum/schedule/core/rank_slots.h"

namespace plenum::schedule {

/// Runs a schedule in one of the orders that are possible, drawn at random: lanes get on as they like as long
/// as what they need is there. Knows nothing of EventOrder. Watches the slots of all ranks: a tenant must
/// find its slot free when the first byte may come, and gives it back after its last reader.
class RandomExecution {
 public:
  /// Borrows all of it.
  RandomExecution(const Dataflow& dataflow, const std::vector<RankSlots>& slots, std::uint64_t seed);

  /// Runs some steps; the first conflict, in words, or nothing.
  std::string run(std::size_t num_steps);

  /// The most slots of a kind that were taken on a rank at a time.
  std::size_t most_taken(Rank rank, TenantKind kind) const {
    return most_taken_[rank.index()][static_cast<std::size_t>(kind)];
  }

 private:
  enum class State { Waits, Runs };
  struct LaneState {
    std::size_t step = 0;
    std::size_t position = 0;  ///< in the step
    State state = State::Waits;
    double eagerness = 0;
    std::vector<ValueRef> missing = {};  ///< of the action's inputs, those not seen yet
  };
  struct Place {
    Rank rank;
    std::size_t lane = 0;
  };
  /// What lies in a slot, and how many of its readers are still to come.
  struct Taken {
    Tenant tenant;
    std::size_t step = 0;
    std::size_t num_readers = 0;
  };
  using SlotKey = std::tuple<std::size_t, TenantKind, std::size_t>;
  using Message = std::tuple<std::size_t, ActionType, StageId, MicroBatchId, std::size_t>;
  using Meeting = std::tuple<std::size_t, std::uint32_t, std::size_t>;

  const Action* action_at(const Place& place) const;
  bool can_move(const Place& place);
  bool can_begin(const Place& place);
  bool can_end(const Place& place, const Action& action) const;
  void move(const Place& place);
  /// To the next action of the lane, in this step or a later one, and what it waits for.
  void move_on(const Place& place);
  void begin(const Place& place, const Action& action);
  void end(const Place& place, const Action& action);
  void take(Rank rank, const Tenant& tenant, std::size_t step);
  void give_back(Rank rank, const Tenant& tenant, std::size_t step);
  bool is_skipped(const Action& action, std::size_t step) const { return step < action.age; }
  static bool meets_all(const Action& action);

  const Dataflow& dataflow_;
  const std::vector<RankSlots>& slots_;
  std::mt19937_64 random_;
  std::size_t num_steps_ = 0;
  std::vector<TenantUses> uses_;
  std::vector<std::array<LaneState, kNumLanes>> lanes_;
  std::vector<std::vector<bool>> made_;  ///< of each rank: by value, then by step
  std::set<Message> sent_;
  std::map<Meeting, std::size_t> present_;
  std::map<std::tuple<std::size_t, TenantKind, StageId, MicroBatchId, LayerId, std::size_t>, std::size_t>
      num_readers_;  ///< of a rank's tenant in a step of the cycle
  std::map<SlotKey, Taken> taken_;
  std::vector<std::array<std::size_t, kNumTenantKinds>> num_taken_;
  std::vector<std::array<std::size_t, kNumTenantKinds>> most_taken_;
  std::string conflict_;
};

}  // namespace plenum::schedule
