#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include "plenum/schedule/core/action.h"

namespace plenum::pipeline {

/// What ended a run.
struct Failure {
  schedule::Rank rank;
  schedule::Lane lane = schedule::Lane::Compute;
  std::uint64_t step = 0;
  std::string action;             ///< as action_text() writes it
  std::string message;            ///< what it threw, or how it hangs and what the others wait for
  std::exception_ptr cause = {};  ///< what it threw; null for a hang
  bool is_hang = false;           ///< it took too long
  /// Who ended all communication and so this action, if that did; the message says why.
  schedule::Rank aborted_by = schedule::Rank::none();
};

/// "rank 1, compute, step 3, B1.2: message".
std::string failure_text(const Failure& failure);

/// Thrown from a run that failed: failure_text().
class ExecutionError : public std::runtime_error {
 public:
  explicit ExecutionError(Failure failure);
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

}  // namespace plenum::pipeline
