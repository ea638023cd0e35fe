#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "plenum/base/function_ref.h"
#include "plenum/batch/work.h"
#include "plenum/describe/flops.h"

namespace plenum::train {

/// A step that was asked for and is not counted yet.
struct PendingStep {
  std::chrono::steady_clock::time_point begin;
  double learning_rate = 0;
  batch::Work work;
  std::int64_t padded_tokens = 0;
};

/// The steps that are not counted yet, oldest first. A GPU is given the next step before what came of the
/// last is known, so that it never waits for the host; a step is then counted while another runs.
class PendingSteps {
 public:
  /// Which steps must be counted before the next is asked for.
  enum class Due : std::uint8_t {
    ButLag,  ///< training goes on
    All,     ///< something is to be done between this step and the next, if there is one
  };

  /// `lag`: how many steps may stay uncounted while training goes on.
  explicit PendingSteps(std::size_t lag) : lag_(lag) {}

  bool is_empty() const { return steps_.empty(); }
  std::size_t size() const { return steps_.size(); }
  void add(const PendingStep& step) { steps_.push_back(step); }

  /// Counts steps by `count`, which waits for what came of one and says whether a stop was asked for. After
  /// one that says so no step follows, and all are counted. Returns whether one did. If counting one throws,
  /// those behind it stay.
  bool count(Due due, base::FunctionRef<bool(const PendingStep&)> count);

 private:
  std::size_t lag_;
  std::deque<PendingStep> steps_;
};

}  // namespace plenum::train
