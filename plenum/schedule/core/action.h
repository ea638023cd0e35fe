#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plenum/base/ids.h"

namespace plenum::schedule {

using base::LayerId;
using base::MicroBatchId;
using base::Rank;
using base::StageId;

/// What runs one after another on a rank. Lanes of a rank run at the same time and are tied only by what
/// their actions read and make.
enum class Lane : std::uint8_t { Compute, DataParallel, Pipeline, Copy };
inline constexpr std::size_t kNumLanes = 4;
std::string_view lane_name(Lane lane);
std::optional<Lane> lane_named(std::string_view name);

enum class ActionType : std::uint8_t {
  Forward,
  Backward,        ///< input and weight gradient at once
  InputGradient,   ///< the part of a backward that the stage before waits for
  WeightGradient,  ///< the rest, any time later
  Recompute,
  SendActivation,
  ReceiveActivation,
  SendGradient,
  ReceiveGradient,
  ReduceGradient,           ///< sum over the ranks that hold the stage, everyone gets it
  ReduceScatterGradient,    ///< sum, each holder gets its shard
  ReduceScatterRound,       ///< the same of one micro-batch of each holder; its micro-batch is a round
  GatherParameters,         ///< shards to every holder, for a whole step
  GatherForward,            ///< the same for the forward of one micro-batch of each holder: a round
  GatherBackward,           ///< and for its backward
  ReduceTied,               ///< sum of a parameter that the first and the last stage share
  GatherTiedRows,           ///< which rows of it the first layers read, from every holder to every other
  ReduceTiedOutput,         ///< sum of the half of its gradient that the last layers make
  ReduceScatterTiedOutput,  ///< the same, each holder gets its shard
  GatherTied,               ///< its updated shards to every holder
  CurvatureA,               ///< K-FAC: second moment of a linear map's input, one micro-batch
  CurvatureB,               ///< K-FAC: second moment of a linear map's output gradient, one micro-batch
  ReduceCurvature,
  Invert,            ///< both factors of a linear map, on the rank that owns it
  InvertLayers,      ///< those of all linear maps that the rank owns, at once
  AccumulateFactor,  ///< Shampoo, SOAP: second moments of the final gradient
  InverseRoot,       ///< Shampoo, SOAP: inverse root (or basis) of an accumulated factor, on its owner
  Precondition,      ///< the gradients whose factors this rank owns
  GatherPreconditioned,
  SquareGradient,     ///< sum of squares of the part of the final gradient that this rank counts
  Agree,              ///< gradient norm, losses and wishes to stop over all ranks
  UpdateMoments,      ///< the part of a sharded update that comes before the norms of whole tensors are known
  ReduceTensorNorms,  ///< sums of squares of each tensor over the holders of its shards
  Update,
  ExchangeData,  ///< sequences between ranks, for the next step
};
inline constexpr std::size_t kNumActionTypes = static_cast<std::size_t>(ActionType::ExchangeData) + 1;

constexpr bool is_send(ActionType type) {
  return type == ActionType::SendActivation || type == ActionType::SendGradient;
}
constexpr bool is_receive(ActionType type) {
  return type == ActionType::ReceiveActivation || type == ActionType::ReceiveGradient;
}

/// Whether the micro-batch that an action names is a round: the first, second ... of those that each holder
/// of the stage runs, in the order of their numbers.
constexpr bool counts_rounds(ActionType type) {
  return type == ActionType::ReduceScatterRound || type == ActionType::GatherForward ||
         type == ActionType::GatherBackward;
}

/// Collectives in which each holder of the stage gets its part, and those to which each gives its part.
constexpr bool is_scatter(ActionType type) {
  return type == ActionType::ReduceScatterGradient || type == ActionType::ReduceScatterRound ||
         type == ActionType::ReduceScatterTiedOutput;
}
constexpr bool is_gather(ActionType type) {
  return type == ActionType::GatherParameters || type == ActionType::GatherForward ||
         type == ActionType::GatherBackward || type == ActionType::GatherTiedRows ||
         type == ActionType::GatherTied || type == ActionType::GatherPreconditioned;
}

/// Whether it is about the parameter that the first and the last stage share, and so of those that hold it.
constexpr bool is_of_tied(ActionType type) {
  return type == ActionType::ReduceTied || type == ActionType::GatherTiedRows ||
         type == ActionType::ReduceTiedOutput || type == ActionType::ReduceScatterTiedOutput ||
         type == ActionType::GatherTied;
}

/// What an action of a type names, where it runs, and how it is written.
struct ActionTraits {
  ActionType type;
  std::string_view code;  ///< in text: F of F2.1
  std::string_view name;
  Lane lane;
  bool has_stage;
  bool has_micro_batch;
  enum class Layers { None, Range, One } layers;
  bool has_factor;     ///< works on one linear map (factor pair) of its layer
  bool is_collective;  ///< every rank of its group takes part
  bool may_be_stale;   ///< may work on what an earlier step made
  bool is_splittable;  ///< may run in pieces
};
const ActionTraits& traits_of(ActionType type);
std::span<const ActionTraits> all_action_traits();
std::optional<ActionType> action_type_named(std::string_view code);

/// The greatest age and number of pieces of an action; what schedule files can hold.
inline constexpr std::uint8_t kMaxAge = 254;
inline constexpr std::uint8_t kMaxPieces = 254;

/// One thing a rank does. What it reads and makes follows from type and ids (see Dataflow). Fields that the
/// type does not name keep their defaults, so that equal actions compare equal.
struct Action {
  ActionType type = ActionType::Forward;
  std::uint8_t age = 0;  ///< steps between the step whose values it works on and the step that runs it
  StageId stage = StageId::none();
  MicroBatchId micro_batch = MicroBatchId::none();
  LayerId first_layer = {};  ///< layers [first_layer, end_layer), counted over the whole model
  LayerId end_layer = {};
  std::uint16_t factor = 0;  ///< which linear map of the layer
  std::uint8_t piece = 0;    ///< which of num_pieces equal parts of the work, done in order
  std::uint8_t num_pieces = 1;

  friend bool operator==(const Action&, const Action&) = default;
};
static_assert(sizeof(Action) == 16, "schedules of millions of actions rely on small actions");

}  // namespace plenum::schedule
