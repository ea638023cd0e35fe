#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/base/ids.h"
#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/train/mesh.h"

namespace plenum::train {

/// Which part of the model each rank of a mesh has: the layers of its stages, and of these its slice. Says
/// which element of the whole model lies where, by the names of parameters. A pure function of model, mesh
/// and schedule, so every process knows it of all.
class ModelParts {
 public:
  using Elements = describe::ParameterTable::ElementRange;

  ModelParts(const describe::ModelConfig& model, const Mesh& mesh, const schedule::Schedule& schedule);
  ModelParts(const ModelParts&) = delete;
  ModelParts& operator=(const ModelParts&) = delete;

  const Mesh& mesh() const { return mesh_; }
  const describe::ParameterTable& whole() const { return whole_; }
  /// That of a rank's flat buffers.
  const describe::ParameterTable& part(base::Rank rank) const {
    return parts_[mesh_.index_in_replica(rank)].table;
  }
  /// Whether a replica is several ranks.
  bool are_several() const { return parts_.size() > 1; }

  /// Of those ranks of a replica that have the same elements of a parameter.
  struct Holder {
    std::size_t index = 0;  ///< of this rank among them
    std::size_t count = 0;
  };
  /// `parameter` is the index in part(rank).
  Holder holder(base::Rank rank, std::size_t parameter) const {
    return parts_[mesh_.index_in_replica(rank)].holders[parameter];
  }
  /// Whether no rank of the replica before this one has a layer of the same slice.
  bool is_first_with(base::Rank rank, base::LayerId layer) const;

  /// Calls visit(piece of the whole model's flat buffer) for all that a piece of a rank's flat buffer holds.
  void for_each_piece(base::Rank rank, const model::FlatPiece& piece,
                      base::FunctionRef<void(const model::FlatPiece&)> visit) const;

 private:
  struct Part {
    describe::ParameterTable table;
    std::vector<std::size_t> in_whole = {};  ///< of each of its parameters, the index in the whole model's
    std::vector<Holder> holders = {};        ///< of each of its parameters
  };

  Mesh mesh_;
  describe::ParameterTable whole_;
  std::vector<Part> parts_;  ///< of the ranks of a replica, in order
};

}  // namespace plenum::train
