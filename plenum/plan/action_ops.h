#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/batch/label_counts.h"
#include "plenum/describe/model_description.h"
#include "plenum/plan/op.h"
#include "plenum/plan/step_work.h"
#include "plenum/schedule/core/recomputation.h"
#include "plenum/tensor/device.h"
#include "plenum/tensor/precision.h"

namespace plenum::plan {

/// How much a device computes of a micro-batch: padding included, and on a GPU counts rounded up.
struct ComputedWork {
  double rows = 0;
  double read = 0;                                         ///< rows of the last layer that heads read
  std::array<double, batch::kMostObjectives> labels = {};  ///< of these, those of each objective
  double tokens = 0;                                       ///< that attention and curvature see: no padding
  double mean_length = 0;  ///< keys that a token reads: squares of lengths / tokens
  double real_labels = 0;  ///< that curvature sees

  /// Nothing is done for a micro-batch of which no head reads anything.
  bool is_empty() const { return read == 0; }
};
ComputedWork computed_work(const MicroBatchWork& micro_batch, const describe::ModelDescription& model,
                           tensor::Device device);
/// The same micro-batch if it had no padding.
MicroBatchWork without_padding(const MicroBatchWork& micro_batch);

/// What a pass computes, as the actions of a schedule name it.
enum class Pass : std::uint8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient,
  RecomputeMlp,
  RecomputeFull
};

/// Whether the gradients of a pass overwrite those of the step before or are added to those of a micro-batch.
enum class Gradients : std::uint8_t { Overwritten, AddedTo };

/// Whether embedding and head, which share the word table, are of one stage: then the head's gradient comes
/// first and overwrites. Else each adds its own to zeros.
enum class WordGradient : std::uint8_t { OfOneStage, Apart };

/// What a rank does of a part of the model: operations in their order, and what the ranks that hold slices of
/// it exchange in between, in bytes of the whole.
struct PartWork {
  std::vector<Op> ops;
  std::vector<double> summed_bytes;    ///< of each all-reduce over slices
  std::vector<double> gathered_bytes;  ///< of each gather
};

/// The operations that the engine performs for the parts of a model (model/bert, model/encoder_layer,
/// model/embedding_block, model/word_head, model/task_head), from the description alone. With tensor
/// parallelism the description is a rank's slice, and so are the operations.
///
/// Approximated: of a window of attention, all sequences count as of the mean length; a word's row of the
/// embedding's gradient is written for every token that reads it, as if none came twice; vectors of one
/// number for each row or column, and what dropout keeps, are not counted.
class ActionOps {
 public:
  /// Borrows the model.
  ActionOps(const describe::ModelDescription& model, tensor::Device device,
            schedule::Recomputation recomputation, WordGradient words = WordGradient::OfOneStage);

  PartWork embedding(Pass pass, const ComputedWork& work, Gradients gradients) const;
  PartWork layer(std::size_t index, Pass pass, const ComputedWork& work, Gradients gradients) const;
  /// With the norm behind the last layer.
  PartWork heads(Pass pass, const ComputedWork& work, Gradients gradients) const;

  /// For each layer the first one for which the operations are the same.
  std::vector<std::size_t> alike_layers() const;
  /// Whether backward must make an MLP's inner output again, of what it keeps of its input.
  bool remakes_mlp_output() const;
  bool is_last(std::size_t layer) const { return layer + 1 == model_.layers.size(); }
  double activation_bytes() const { return activation_bytes_; }
  const describe::ModelDescription& model() const { return model_; }
  tensor::Device device() const { return device_; }

 private:
  class LayerPass;
  class HeadPass;

  Op op(OpKind kind, double rows, double in, double out = 1) const;
  Op zeros_of(const describe::Table& table) const;

  const describe::ModelDescription& model_;
  tensor::Device device_;
  schedule::Recomputation recomputation_;
  WordGradient words_;
  double activation_bytes_;
};

}  // namespace plenum::plan
