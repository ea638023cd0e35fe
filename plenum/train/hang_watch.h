#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

namespace plenum::train {

/// Notices that what a run does beside its steps hangs: it is told what is under way, and tells if that does
/// not get on for longer than a limit. Time in which nobody looked does not count: the process was stopped.
/// Steps have a watch of their own (pipeline::Executor), which knows their actions.
class HangWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// Told what hangs, once for each activity, by whoever looks. The activity cannot end meanwhile. Must not
  /// throw.
  using Told = std::function<void(const std::string& what)>;

  HangWatch(std::chrono::milliseconds limit, Told told);
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// Something that is under way for as long as this lives. One at a time.
  class Activity {
   public:
    /// Borrows the watch. "HANGS for 60000 ms" is told if it does not get on: "the evaluation hangs: no
    /// micro-batch has been done".
    Activity(HangWatch& watch, std::string hangs);
    ~Activity();
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

    /// Says that a part of it is done: the limit counts from here.
    void get_on();
    /// Says that it waits for others, who have a watch of their own: nothing counts until it gets on.
    void rest();

   private:
    HangWatch& watch_;
  };

  /// What is under way and would hang, in words; empty if nothing is. By any thread.
  std::string under_way() const;

  /// Looks every so often until a stop is asked for. For a thread of its own.
  void watch(const std::stop_token& stop);
  /// Looks once.
  void look(Clock::time_point now);

 private:
  const std::chrono::milliseconds limit_;
  const Told told_;
  mutable std::mutex mutex_;  ///< of what follows
  bool is_under_way_ = false;
  bool is_resting_ = false;
  std::string hangs_;
  std::uint64_t num_moves_ = 0;   ///< grows whenever something begins or gets on
  std::uint64_t seen_moves_ = 0;  ///< at the last look
  Clock::time_point seen_;        ///< when num_moves_ was first seen as it is
  Clock::time_point looked_;      ///< last
  bool is_told_ = false;
};

}  // namespace plenum::train
