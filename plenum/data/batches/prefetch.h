#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "plenum/batch/step_batch.h"
#include "plenum/data/batches/sequence_exchange.h"
#include "plenum/data/batches/step_batches.h"

namespace plenum::data {

/// Makes the next steps on a thread of its own while the current one trains, at most kStepsAhead of them.
class Prefetch {
 public:
  static constexpr std::size_t kStepsAhead = 2;

  /// Borrows the source. Begins with `first_step` at once: a resumed run starts anywhere. Makes what all
  /// ranks work on, or what one does.
  ///
  /// That one may get sequences from other ranks by an exchange, which is borrowed. Then all ranks begin with
  /// the same step and take as many: each step that a rank makes, all make, also where one goes while
  /// another has yet to make it.
  Prefetch(const StepBatchSource& source, std::uint64_t first_step,
           std::optional<base::Rank> rank = std::nullopt, SequenceExchange* exchange = nullptr);

  /// What StepBatchSource::make gives for the next step, waiting for it if need be: of all ranks, or of the
  /// one. Throws what make threw, at the step that it threw for and from then on.
  std::vector<batch::StepBatch> take();

 private:
  void run(const std::stop_token& stop, std::uint64_t step);

  std::vector<batch::StepBatch> make(std::uint64_t step) const;

  const StepBatchSource& source_;
  const std::optional<base::Rank> rank_;
  SequenceExchange* const exchange_;  ///< null: the source can read all
  std::mutex mutex_;                  ///< of the next three
  std::condition_variable_any changed_;
  std::deque<std::vector<batch::StepBatch>> made_;
  std::exception_ptr error_;
  std::jthread thread_;  ///< last, so that it ends before what it uses
};

}  // namespace plenum::data
