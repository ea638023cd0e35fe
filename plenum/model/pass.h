#pragma once

#include <cstdint>

#include "plenum/base/philox.h"
#include "plenum/comm/communicator.h"
#include "plenum/describe/model_description.h"
#include "plenum/kernels/accumulate.h"
#include "plenum/kernels/dropout.h"
#include "plenum/model/micro_batch_views.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::model {

/// Whether a pass drops activations, and by which random numbers.
struct DropoutSource {
  bool is_on = false;
  base::PhiloxKey key = {};  ///< of RandomFunction(seed, Purpose::Dropout, epoch)
};

/// What all parts of a model need for their work on one micro-batch. Borrows.
struct Pass {
  const tensor::Stream& stream;
  const describe::ModelDescription& model;
  MicroBatchViews micro_batch;
  DropoutSource dropout = {};
  /// Whether backward adds to gradients, or is a step's first and overwrites what lies there.
  kernels::Accumulate accumulate = kernels::Accumulate::Yes;
  /// Where the embedding's gradient of words goes by rows of their own in place of the whole table: these are
  /// added to, and the micro-batch's by_word has their numbers as entries. Not given: the whole table.
  tensor::TensorView word_rows_RD = {};
  /// Where a forward of the last layer of a stage puts the input of the next; not given: Activations::y_TD.
  tensor::TensorView output_TD = {};
  /// Whether the gradient of a tied word table was begun before any part of the model works on it: all add.
  bool has_word_gradient = false;
  /// The ranks that hold the model together, in the order of their slices, for the thread that runs the pass
  /// alone; null where one holds all of it. All of them run the same passes, in the same order.
  comm::Communicator* group = nullptr;

  kernels::Accumulate accumulate_words() const {
    return has_word_gradient ? kernels::Accumulate::Yes : accumulate;
  }

  std::int64_t num_rows() const { return micro_batch.num_rows(); }
  /// Labels of an objective of the model.
  std::int64_t num_labels(std::size_t objective) const {
    return micro_batch.objectives[objective].num_labels();
  }

  bool is_last(std::size_t layer) const { return layer + 1 == model.layers.size(); }
  /// Rows of the last layer's output that heads read (plenum/model/read_rows.h).
  std::int64_t num_read() const { return batch::total(micro_batch.num_labels()); }

  kernels::Dropout dropout_at(std::size_t layer, kernels::DropoutSite site) const {
    const bool is_attention = site == kernels::DropoutSite::AttentionWeights;
    const double rate = is_attention ? model.attention_dropout : model.hidden_dropout;
    return {.threshold = dropout.is_on ? kernels::dropout_threshold(rate) : 0,
            .key = dropout.key,
            .layer = static_cast<std::uint32_t>(layer),
            .site = site,
            .first_head =
                is_attention ? static_cast<std::uint32_t>(model.layers[layer].attention.first_head) : 0};
  }
  kernels::Dropout dropout_of_head(std::size_t objective) const {
    return {.threshold = dropout.is_on ? kernels::dropout_threshold(model.heads[objective].dropout) : 0,
            .key = dropout.key,
            .site = kernels::DropoutSite::HeadInput};
  }
  kernels::RowIdentities rows() const {
    return {.sample_T = micro_batch.row_sample_T, .position_T = micro_batch.position_T};
  }
  kernels::RowIdentities read_rows() const {
    return {.sample_T = micro_batch.read_rows.sample_T.first_rows(num_read()),
            .position_T = micro_batch.read_rows.position_T.first_rows(num_read())};
  }
  float norm_epsilon() const { return static_cast<float>(model.norm_epsilon); }
};

}  // namespace plenum::model
