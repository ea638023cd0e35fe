#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::train {

/// A model that several ranks hold together, each a slice: which element lies where, and room for all of its
/// weights in the host's memory, for what needs the whole: initialisation, import and evaluation.
class WholeModel {
 public:
  /// That of the room.
  static std::size_t num_bytes(const describe::ModelConfig& model);

  WholeModel(const describe::ModelConfig& model, std::size_t num_slices);
  WholeModel(const WholeModel&) = delete;
  WholeModel& operator=(const WholeModel&) = delete;

  const describe::ParameterTable& table() const { return table_; }
  std::size_t num_slices() const { return slices_.size(); }
  const tensor::TensorView& weights_N() const { return weights_N_; }

  /// Overwrites a slice with its part of the room.
  void scatter(std::size_t slice, std::span<float> slice_N) const;
  /// Overwrites the room with the slices of all ranks, which lie here.
  void gather(std::span<const std::span<const float>> slices);
  /// The same with those of other processes: all ranks of the group, in the order of their slices, do so with
  /// their own at the same time.
  void gather(std::span<const float> own, comm::Communicator& group);

  /// The tensors that slices divide, and those that every slice has.
  enum class Which : std::uint8_t { Divided, Alike };
  /// Adds what a part of a slice's flat buffer holds of them, as pieces of the whole model's.
  void add_pieces(std::size_t slice, const model::FlatPiece& part, Which which,
                  std::vector<model::FlatPiece>& pieces) const;

 private:
  /// Copies a slice's part of a tensor to its places in the room.
  void place(std::size_t slice, std::size_t parameter, const float* values);

  describe::ParameterTable table_;
  std::vector<describe::ParameterTable> slices_;  ///< the tables of the ranks
  std::vector<float> weights_;
  tensor::TensorView weights_N_;
};

}  // namespace plenum::train
