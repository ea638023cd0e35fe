#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/model/parameters.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/memory_layout.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

/// What evaluation counts of an objective, over any number of micro-batches.
struct ObjectiveSums {
  double loss = 0;              ///< the sum of
  std::int64_t num_losses = 0;  ///< as describe::num_losses
  /// Where the label has the greatest logit, of a group in every column; none where labels are numbers.
  std::int64_t correct = 0;
};

struct EvaluationSums {
  std::array<ObjectiveSums, batch::kMostObjectives> objectives;  ///< the model's

  EvaluationSums& operator+=(const EvaluationSums& other);
};

/// Runs a BERT forward without keeping what only training needs: no dropout, and the layers share their
/// memory.
class BertInference {
 public:
  /// With weights of its own, zero at first: to be written through weights(). Throws UserError if memory is
  /// short. A GPU needs no threads.
  BertInference(const describe::ModelConfig& config, const batch::Capacity& capacity, std::size_t num_threads,
                tensor::Device device = tensor::Device::Cpu);
  /// Borrows the weights, which lie on the device, as they are at each call.
  BertInference(const describe::ModelConfig& config, const batch::Capacity& capacity, std::size_t num_threads,
                const BertWeights& weights, tensor::Device device = tensor::Device::Cpu);
  ~BertInference();
  BertInference(const BertInference&) = delete;
  BertInference& operator=(const BertInference&) = delete;

  const describe::ParameterTable& parameters() const;
  /// Its own weights: Float32, in the host's memory, flat in the order of parameters(). What is written there
  /// counts from the next call on. Not where they are borrowed.
  tensor::TensorView weights();
  /// The memory it has taken.
  const tensor::MemoryLayout& memory() const;
  /// Of its device.
  const tensor::Stream& stream() const;

  /// Losses and predictions of the objectives that model and micro-batch have. Of a task's head, overwrites
  /// `logits`, if given, with what logits() returns.
  EvaluationSums evaluate(const batch::MicroBatch& micro_batch, std::vector<float>* logits = nullptr);
  /// The logits at the rows of the first objective, [M, words or other outputs], row by row; labels are not
  /// read.
  std::vector<float> logits(const batch::MicroBatch& micro_batch);

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace plenum::model
