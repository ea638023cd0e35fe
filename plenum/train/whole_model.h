#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::train {

/// A model that several ranks hold together, each a slice, or a shard of a slice: which element lies where,
/// and room for all of its weights in the host's memory, for what needs the whole: initialisation, import and
/// evaluation.
class WholeModel {
 public:
  /// What a rank holds: of a slice's flat buffer, its parts of the shard's buckets, one behind another.
  struct Holding {
    std::size_t slice = 0;
    describe::ParameterShard shard;
  };

  /// That of the room.
  static std::size_t num_bytes(const describe::ModelConfig& model);
  /// What is needed beside it while ranks of other processes put the model together in these buckets.
  static std::size_t num_bytes_on_the_way(const describe::ModelConfig& model, std::size_t num_slices,
                                          std::span<const describe::ParameterShard::LayerRange> buckets);
  /// Buckets of a layer each.
  static std::vector<describe::ParameterShard::LayerRange> single_layers(std::size_t num_layers);

  WholeModel(const describe::ModelConfig& model, std::size_t num_slices);
  WholeModel(const WholeModel&) = delete;
  WholeModel& operator=(const WholeModel&) = delete;

  const describe::ParameterTable& table() const { return table_; }
  std::size_t num_slices() const { return slices_.size(); }
  const tensor::TensorView& weights_N() const { return weights_N_; }

  /// The table of a slice's flat buffer.
  const describe::ParameterTable& slice(std::size_t index) const { return slices_[index]; }

  /// Overwrites a part of a slice's flat buffer with what the room has of it.
  void scatter(std::size_t slice, const model::FlatPiece& part) const;
  /// Overwrites the room with a part of a slice's flat buffer; of what all slices have, with the first one's.
  void gather(std::size_t slice, const model::FlatPiece& part);
  /// Overwrites the room with what the ranks of a group hold, in their order, which lie in other processes:
  /// all of them do so with their own at the same time.
  void gather(std::span<const float> own, std::span<const Holding> holdings, comm::Communicator& group);

  /// The tensors that slices divide, and those that every slice has.
  enum class Which : std::uint8_t { Divided, Alike };
  /// Adds what a part of a slice's flat buffer holds of them, as pieces of the whole model's.
  void add_pieces(std::size_t slice, const model::FlatPiece& part, Which which,
                  std::vector<model::FlatPiece>& pieces) const;

 private:
  describe::ParameterTable table_;
  std::vector<describe::ParameterTable> slices_;  ///< the tables of the ranks
  std::vector<float> weights_;
  tensor::TensorView weights_N_;
};

}  // namespace plenum::train
