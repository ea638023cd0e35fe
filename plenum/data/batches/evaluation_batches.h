#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/batch/work.h"
#include "plenum/data/batches/micro_batch_assembly.h"

namespace plenum::data {

struct EvaluationOptions {
  MaskingOptions masking = {};
  std::optional<std::int64_t> max_sequences = {};       ///< at least 1, drawn by the seed; all if absent
  std::optional<std::int64_t> micro_batch_tokens = {};  ///< as MicroBatchCut has it
  std::uint64_t seed = 0;  ///< of draw and masks; not that of training, so that runs can be compared
};

/// The most that a micro-batch of EvaluationBatches may have, whichever sequences are drawn: known from
/// lengths.
batch::Capacity most_evaluated(const SequenceSource& sequences, const EvaluationOptions& options);

/// What a model is evaluated on: sequences in unpadded micro-batches, masked the same way every time (as
/// epoch 0 of the seed). Any number of threads may ask.
class EvaluationBatches {
 public:
  /// Borrows the sequences. Throws UserError if there are none, or one does not fit into a micro-batch.
  EvaluationBatches(const SequenceSource& sequences, const EvaluationOptions& options);

  std::size_t size() const { return plans_.size(); }
  /// The most that a micro-batch has; the length is the most that a sequence may have.
  const batch::Capacity& capacity() const { return capacity_; }
  /// Of all micro-batches.
  const batch::Work& work() const { return work_; }
  /// Without rows grouped by table entry. index < size().
  batch::MicroBatch make(std::size_t index) const;

 private:
  const SequenceSource& sequences_;
  Masking masking_;
  std::vector<MicroBatchPlan> plans_;
  batch::Capacity capacity_;
  batch::Work work_;
};

}  // namespace plenum::data
