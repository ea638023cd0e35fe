#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/optimizer_step.h"
#include "plenum/memory/divided_layers.h"
#include "plenum/optim/kfac_options.h"
#include "plenum/optim/muon.h"
#include "plenum/optim/optimizer_kind.h"
#include "plenum/optim/soap.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::optim {

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::AdamW;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::optional<double> epsilon = std::nullopt;  ///< default_epsilon(kind) if absent
  double muon_momentum = 0.95;                   ///< of Muon, where beta1 is of the AdamW beside it
  SoapOptions soap = {};
  double decay = 0.01;
  double layer_decay = 1;  ///< of the learning rate from layer to layer: rate_factor()
  double clip_norm = 1;    ///< greatest norm of the whole gradient; 0: no clipping

  OptimizerKind kfac_base = OptimizerKind::Lamb;  ///< what updates beneath K-FAC
  KfacOptions kfac = {};

  /// What updates: the kind itself, or what is beneath K-FAC.
  OptimizerKind update_kind() const { return kind == OptimizerKind::Kfac ? kfac_base : kind; }
  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// The flat buffers that an optimizer works on, borrowed: of N = ParameterTable::num_elements() elements, or
/// of the S elements of the shard that it updates, as ParameterShard lays them out.
struct OptimizerBuffers {
  tensor::TensorView weights_N;  ///< or of the shard, as the next but one says
  /// As products read them; weights_N where that is the same type, or where they are made of those of the
  /// shard when it is gathered.
  tensor::TensorView compute_weights_N;
  bool are_weights_of_shard = false;
  tensor::TensorView gradients_N;  ///< or of the shard, as the next says
  bool are_gradients_of_shard = false;
  tensor::TensorView first_moments_S;
  /// Muon has no second moment: what would be a hidden matrix's is the room that its iterations begin in.
  tensor::TensorView second_moments_S;
  tensor::TensorView chunks_C4 = {};  ///< kernels::OptimizerWork: written by begin(); needed on the GPU
  MuonBuffers muon = {};
  SoapBuffers soap = {};
};

/// Updates all parameters that a rank holds, or its shard of them, stage by stage. See
/// docs/math/optimizers.md.
class Optimizer {
 public:
  /// `divided`: memory::divided_layers() of the schedule that the optimizer is part of.
  Optimizer(const OptimizerOptions& options, const describe::ParameterTable& table,
            const describe::ParameterShard& shard, OptimizerBuffers buffers,
            std::vector<memory::DividedLayer> divided = {});

  /// To be called once, before the first step.
  void begin(const tensor::Stream& stream);
  /// Adds the squares of these elements of the gradient to those of the step, of which the whole gradient's
  /// norm is made.
  void add_squares(const tensor::Stream& stream, const describe::ParameterTable::ElementRange& elements,
                   const tensor::TensorView& scalars_C) const;
  /// The same of all that it updates.
  void add_squares_of_shard(const tensor::Stream& stream, const tensor::TensorView& scalars_C) const;
  /// Decides once a step, before anything is updated, by how much the gradient is clipped, and that nothing
  /// changes if loss or gradient are not finite. Among the step's scalars, reads losses, squares of the
  /// gradient, learning rate and the number of updates before this one, and writes what was decided.
  void decide(const tensor::Stream& stream, const tensor::TensorView& scalars_C) const;
  /// Makes the update that was decided, of what belongs to these layers. Gradients are only read. Not for
  /// LAMB on a shard, whose tensors are cut; Muon and SOAP take no shard at all, and update the matrices of
  /// all layers with those of the rank's last. SOAP refreshes its bases in some steps of a run.
  void step(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
            const describe::LayerRange& layers, std::uint64_t step_index = 0) const;

  /// Where holders of layers divide Muon's or SOAP's work on matrices, the first half of their step, to be
  /// done once it is decided: overwrites the gradients of the matrices that the rank owns by directions.
  /// Those of others come from their owners before step(), which is the second half.
  void make_directions(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                       const describe::LayerRange& layers) const;

  /// What of SOAP schedules move; null where something else updates matrices.
  const Soap* soap() const { return soap_ ? &*soap_ : nullptr; }
  /// Of SOAP, which of own_matrices() are of these layers.
  Soap::Groups own_groups(const describe::LayerRange& layers) const;

  /// LAMB on a shard, as step() in two halves. The first overwrites the squares of every parameter's weights
  /// and of their directions (Float64) by those of the shard's part of it, zero for other layers; between
  /// them ranks add theirs up.
  void update_moments(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                      const tensor::TensorView& squares_P2, const describe::LayerRange& layers) const;
  void update_weights(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                      const tensor::TensorView& squares_P2, const describe::LayerRange& layers) const;

 private:
  /// A part of the flat buffers that is updated as one.
  struct Piece {
    describe::LayerRange layers;                      ///< whose update it belongs to
    describe::ParameterTable::ElementRange elements;  ///< of the flat buffers
    std::int64_t shard_begin = 0;                     ///< in buffers of the shard
    std::size_t first_parameter = 0;                  ///< of those that have elements here
    std::vector<kernels::FlatRange> ranges = {};      ///< of them, from the piece's first element on
    std::int64_t first_chunk = 0;                     ///< of its rows of chunks_C4
    std::int64_t num_chunks = 0;
    std::vector<describe::ParameterTable::ElementRange> counted = {};  ///< in the norm, of the flat buffers
  };

  void add_piece(const describe::ParameterTable& table, const describe::ParameterShard::Bucket& bucket);
  /// Calls work(piece) for those of the layers.
  template <typename Work>
  void for_pieces(const describe::LayerRange& layers, const Work& work) const;
  /// By directions that lie where gradients were.
  void update_divided(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                      const describe::LayerRange& layers) const;
  /// By Muon or SOAP, if that is what updates them.
  void step_matrices(const tensor::Stream& stream, const tensor::TensorView& scalars_C,
                     std::uint64_t step_index) const;
  kernels::AdamStep step_of(const Piece& piece, const tensor::TensorView& scalars_C) const;
  kernels::LambHalf half_of(const Piece& piece, const tensor::TensorView& scalars_C,
                            const tensor::TensorView& squares_P2) const;

  OptimizerOptions options_;
  std::vector<Piece> pieces_;
  OptimizerBuffers buffers_;
  std::vector<memory::DividedLayer> divided_;
  std::optional<Muon> muon_;
  std::optional<Soap> soap_;
};

}  // namespace plenum::optim
