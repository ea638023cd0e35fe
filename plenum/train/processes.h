#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plenum/base/ids.h"
#include "plenum/comm/communicator.h"

namespace plenum::train {

/// The processes that train a run together, as one of them sees them. Each is one rank; a process on its own
/// has all ranks of the run as threads.
///
/// The first keeps the run's directory: it locks it, finds the checkpoint, and writes metrics. The others
/// compute what the first tells them to begin with, and take part in what all write.
class Processes {
 public:
  /// On its own.
  Processes() = default;
  /// Says what this process does, for the others to name it if it dies.
  using Say = std::function<void(std::string_view text)>;
  /// By how many seconds the first one's steady clock is ahead of this one's.
  using ClockOffset = std::function<double()>;
  /// Borrows a communicator of all of them, one rank each, which serves nothing else. Without an offset they
  /// share a clock.
  explicit Processes(comm::Communicator& ranks, Say say = {}, ClockOffset clock_offset = {})
      : ranks_(&ranks), say_(std::move(say)), clock_offset_(std::move(clock_offset)) {}

  bool is_alone() const { return ranks_ == nullptr; }
  bool is_first() const { return is_alone() || ranks_->index() == 0; }
  /// This process's rank; none where it has all of them.
  std::optional<base::Rank> rank() const;
  std::size_t count() const { return is_alone() ? 1 : ranks_->size(); }

  /// A communicator of all of them, for another purpose. Created by all, in the same order. Of this process
  /// alone where it is on its own.
  std::unique_ptr<comm::Communicator> communicator() const;

  /// The first one's text, in all of them.
  std::string from_first(std::string text) const;
  /// The texts of all of them, in their order, in all of them.
  std::vector<std::string> of_all(const std::string& text) const;

  /// Null where nobody listens.
  const Say& say() const { return say_; }
  double clock_offset_seconds() const { return clock_offset_ ? clock_offset_() : 0; }

 private:
  comm::Communicator* ranks_ = nullptr;
  Say say_;
  ClockOffset clock_offset_;
};

}  // namespace plenum::train
