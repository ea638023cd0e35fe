#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/batch/work.h"
#include "plenum/describe/model_description.h"

namespace plenum::describe {

/// Multiplications and additions that a model's objectives need. A linear map needs 2 in out of them for
/// every row, attention 4 H K for every pair of a query and a key that it reads. Rows that no head reads do
/// not count behind the last layer's attention, nor does what is recomputed.
class Flops {
 public:
  explicit Flops(const ModelDescription& model);

  /// Of a forward pass, in a model whose layers all attend to whole sequences.
  double forward(const batch::Work& work) const;
  /// Of a forward pass in any model: how many pairs lie within a window follows from the length of each
  /// sequence.
  double forward(const batch::Work& work, std::span<const std::int32_t> lengths) const;
  /// Of each layer in a forward pass, with those of all heads in the last one's; in a model whose layers all
  /// attend to whole sequences.
  std::vector<double> forward_of_layers(const batch::Work& work) const;
  // Of a training step's forward and backward: three times the forward.
  double training(const batch::Work& work) const { return 3 * forward(work); }
  double training(const batch::Work& work, std::span<const std::int32_t> lengths) const {
    return 3 * forward(work, lengths);
  }

 private:
  /// What a layer needs for a token that it works on, and for a pair.
  struct LayerFlops {
    double projections = 0;
    double behind_attention = 0;
    double of_pair = 0;
  };

  /// Attention of the layers with one window.
  struct WindowedAttention {
    std::int64_t window = 0;
    double of_pair = 0;
  };

  double outside_windows(const batch::Work& work) const;

  std::vector<LayerFlops> layers_;
  double of_token_ = 0;                      ///< in all layers but the last behind its attention
  double of_read_row_ = 0;                   ///< there
  double of_pair_ = 0;                       ///< in layers that attend to all of a sequence
  std::vector<WindowedAttention> windowed_;  ///< the others, by window
  std::vector<double> of_label_;             ///< in the head of each objective
};

}  // namespace plenum::describe
