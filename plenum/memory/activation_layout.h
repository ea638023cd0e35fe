#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/batch/capacity.h"
#include "plenum/describe/kept_tensors.h"
#include "plenum/describe/model_description.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/schedule/core/recomputation.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::memory {

// What a model's parts keep from forward to backward, and what they need in between. Planned for the largest
// micro-batch; a smaller one uses the first rows. T rows, D width, H heads, F feed-forward width, M labels of
// an objective, W words in a row of logits, R rows behind a layer's attention: T, in the last layer
// those that heads read. docs/math/bert.md says why each is kept.

/// What a layer norm keeps of its input and of that input's rows. All that the embedding keeps.
struct NormActivations {
  tensor::TensorView z_TD, mean_T, inverse_deviation_T;

  NormActivations of(std::int64_t num_rows) const;
};

using describe::LayerRows;

/// Beside a layer's input, which is the output of the one before.
struct LayerActivations {
  tensor::TensorView qkv_T3D, context_TD, lse_HT;
  tensor::TensorView keep_bits;  ///< Byte: what attention's dropout keeps; left out where it is drawn again
  tensor::TensorView read_context_RD;  ///< the rows of context_TD that heads read; for the last layer
  NormActivations norm1;               ///< behind attention, or before it
  tensor::TensorView y1_RD;            ///< its output
  tensor::TensorView gelu_RF;          ///< as mlp_gelu_forward() keeps it; left out where no backward follows
  tensor::TensorView h_RF;             ///< behind the GELU; left out where backward makes it of gelu_RF
  NormActivations norm2;               ///< behind the MLP, or before it
  tensor::TensorView mlp_input_RD;     ///< the output of a norm before it

  LayerActivations of(const LayerRows& rows) const;
};

/// The gradients at the outputs of a layer's linear maps, where a backward leaves them behind: gradients of
/// weights and curvature are made of them and of the maps' inputs. All are left out where nothing comes
/// later.
struct LayerErrors {
  tensor::TensorView dqkv_T3D;
  tensor::TensorView dattention_RD;  ///< at the output of attention's output map
  tensor::TensorView du_RF;          ///< at that of the MLP's first map
  tensor::TensorView dmlp_RD;        ///< at that of its second

  LayerErrors of(const LayerRows& rows) const;
};

/// What a head keeps of M labels. One without a transform or a norm leaves out what belongs to it, one of few
/// outputs what only a vocabulary needs.
struct HeadActivations {
  tensor::TensorView u_MD;        ///< before the activation; left out where its backward reads its output
  NormActivations norm;           ///< with M rows
  tensor::TensorView y_MD;        ///< behind transform, activation and norm
  tensor::TensorView dropped_MD;  ///< what dropout leaves for the output map; left out where it reads all
  tensor::TensorView logits_MW, loss_M;
  tensor::TensorView lse_M;
  tensor::TensorView tiles_MN2;     ///< room for the loss to work in
  tensor::TensorView part_PM4;      ///< what P ranks know of its words; left out where one has all
  tensor::TensorView prediction_M;  ///< Int32

  HeadActivations of(std::int64_t num_labels) const;
};

/// What a stage keeps of one micro-batch from its forward to the end of its backward, messages included. What
/// is by layer has a place for every layer of the model; other stages' are left out, and with the first layer
/// and the last what belongs to embedding and heads.
struct Activations {
  NormActivations embedding;
  std::vector<tensor::TensorView> x_TD;  ///< the input of every layer; of the first, as it comes from others
  tensor::TensorView y_TD;               ///< the output as it is sent; left out where it is not
  tensor::TensorView read_RD;            ///< the last layer's output: what heads read
  std::vector<LayerActivations> layers;  ///< recomputed ones are views of the same memory
  std::vector<LayerErrors> errors;       ///< from a layer's backward on
  NormActivations final_norm;            ///< behind the last; left out where there is none
  std::vector<HeadActivations> heads;    ///< by objective
  tensor::TensorView dx_TD;              ///< the gradient that backward has come to, as it comes and is sent
};

/// What a part needs only while it runs, so that parts share it.
struct Transients {
  // An encoder layer's.
  tensor::TensorView mlp_RF;      ///< behind the GELU; in backward the gradient before it takes its place
  tensor::TensorView dbranch_RD;  ///< gradient of what a sublayer gives to its residual
  tensor::TensorView dcontext_TD;
  tensor::TensorView dqkv_T3D;
  // The last layer's, while the heads' and its own others come and go.
  tensor::TensorView dread_RD;  ///< gradient of what the heads read
  tensor::TensorView dread_context_RD;
  // The heads', by objective; left out where one has no transform.
  std::array<tensor::TensorView, batch::kMostObjectives> dy_MD;

  Transients of(const LayerRows& rows, const batch::LabelCounts& num_labels) const;
};

/// What of micro-batches there is to be memory for.
struct TrainingRequest {
  struct Stage {
    describe::LayerRange layers;
    std::size_t num_slots = 1;  ///< micro-batches that are alive at the same time
    bool sends_output = false;  ///< the next stage lies on another rank
  };

  std::vector<Stage> stages = {};  ///< that the rank holds
  schedule::Recomputation recompute = schedule::Recomputation::None;
  bool keeps_errors = false;  ///< backward leaves LayerErrors behind
};

/// Where micro-batches are computed: of each stage the activations of as many as are alive at the same time.
/// Stages share what a part needs only while it runs.
struct TrainingMemory {
  std::vector<std::vector<Activations>> stages;  ///< as in the request; by slot
  Transients transients;
};
TrainingMemory plan_training_memory(const describe::ModelDescription& model, const batch::Capacity& capacity,
                                    const TrainingRequest& request, tensor::MemoryPlan& plan);

/// For forward alone: layers share one place for what they keep.
struct InferenceMemory {
  Activations activations;
  Transients transients;
};
InferenceMemory plan_inference_memory(const describe::ModelDescription& model,
                                      const batch::Capacity& capacity, tensor::MemoryPlan& plan);

/// Scratch for any kernel of the model and its optimizer on so many threads: what a Stream wants.
tensor::TensorView plan_scratch(const describe::ParameterTable& table, const batch::Capacity& capacity,
                                std::size_t num_threads, tensor::MemoryPlan& plan);

}  // namespace plenum::memory
