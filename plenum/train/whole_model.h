#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plenum/comm/communicator.h"
#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/train/model_parts.h"

namespace plenum::train {

/// Room for all weights, in the host's memory, of a model that several ranks hold together, for what needs
/// the whole: initialisation, import and evaluation.
class WholeModel {
 public:
  using Elements = ModelParts::Elements;

  /// What a rank holds, cut as it is put together.
  struct Holding {
    base::Rank rank;
    struct Round {
      Elements elements;       ///< of the flat buffer of its part
      std::int64_t begin = 0;  ///< where they lie in its memory
    };
    std::vector<Round> rounds = {};

    /// A layer at a time, as a rank that has its part in whole has it: so that little memory is needed on the
    /// way. Of layers that another rank of its replica has, too, the first has them.
    static Holding of_part(const ModelParts& parts, base::Rank rank);
    /// A bucket at a time, as a rank that has a shard of its part has it.
    static Holding of_shard(base::Rank rank, const describe::ParameterShard& shard);
  };

  /// Borrows the parts.
  explicit WholeModel(const ModelParts& parts);
  WholeModel(const WholeModel&) = delete;
  WholeModel& operator=(const WholeModel&) = delete;

  const tensor::TensorView& weights_N() const { return weights_N_; }

  /// Overwrites a piece of a rank's flat buffer with what the room has of it.
  void scatter(base::Rank rank, const model::FlatPiece& piece) const;
  /// Overwrites the room with a piece of a rank's flat buffer. What several ranks have they have alike.
  void gather(base::Rank rank, const model::FlatPiece& piece);
  /// Overwrites the room with what the ranks of a group hold, in their order, which lie in other processes:
  /// all of them do so with their own at the same time.
  void gather(std::span<const float> own, std::span<const Holding> holdings, comm::Communicator& group);

 private:
  const ModelParts& parts_;
  std::vector<float> weights_;
  tensor::TensorView weights_N_;
};

}  // namespace plenum::train
