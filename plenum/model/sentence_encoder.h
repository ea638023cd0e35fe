#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "plenum/base/function_ref.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/pool_rows.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"

namespace plenum::model {

/// Turns sequences into vectors: runs a BERT without its heads, and takes the mean of the rows of the last
/// layer's output that a micro-batch names. objectives[0] has these rows (all, or each sequence's first) and
/// for each as its label the sequence, counted from the micro-batch's first; every sequence has one or more.
/// The last layer computes these rows alone, and only vectors leave the device.
class SentenceEncoder {
 public:
  /// Capacity::labels[0] is the most rows that are named. Throws UserError if memory is short. A GPU needs no
  /// threads.
  SentenceEncoder(const describe::ModelConfig& config, const batch::Capacity& capacity,
                  std::size_t num_threads, tensor::Device device = tensor::Device::Cpu);
  ~SentenceEncoder();
  SentenceEncoder(const SentenceEncoder&) = delete;
  SentenceEncoder& operator=(const SentenceEncoder&) = delete;

  /// Of the encoder alone.
  const describe::ParameterTable& parameters() const;
  /// Lets `write` overwrite the weights: Float32, flat in the order of parameters(). Zero before.
  void write_weights(base::FunctionRef<void(std::span<float>)> write);
  /// The memory it has taken.
  const tensor::MemoryLayout& memory() const;

  /// Micro-batches that may be under way at the same time, so that a GPU need not wait for the next.
  static std::size_t most_under_way();
  std::size_t num_under_way() const;
  /// Begins with a micro-batch that has sequences. Borrows it until it is finished.
  void begin(const batch::MicroBatch& micro_batch, kernels::UnitLength unit_length = kernels::UnitLength::No);
  /// Waits for the earliest that is under way. Its vectors, [S, D] row by row, stay until the next begin().
  std::span<const float> finish();

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace plenum::model
