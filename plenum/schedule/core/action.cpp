#include "plenum/schedule/core/action.h"

#include <array>

namespace plenum::schedule {
namespace {

using enum ActionType;
using Layers = ActionTraits::Layers;

// type, code, name, lane, stage, micro-batch, layers, factor, collective, stale, splittable
constexpr std::array<ActionTraits, kNumActionTypes> kTraits = {{
    {Forward, "F", "forward", Lane::Compute, true, true, Layers::Range, false, false, false, false},
    {Backward, "B", "backward", Lane::Compute, true, true, Layers::Range, false, false, false, false},
    {InputGradient, "I", "input-gradient", Lane::Compute, true, true, Layers::Range, false, false, false,
     false},
    {WeightGradient, "W", "weight-gradient", Lane::Compute, true, true, Layers::Range, false, false, false,
     false},
    {Recompute, "RC", "recompute", Lane::Compute, true, true, Layers::Range, false, false, false, false},
    {SendActivation, "SF", "send-activation", Lane::Pipeline, true, true, Layers::None, false, false, false,
     false},
    {ReceiveActivation, "RF", "receive-activation", Lane::Pipeline, true, true, Layers::None, false, false,
     false, false},
    {SendGradient, "SB", "send-gradient", Lane::Pipeline, true, true, Layers::None, false, false, false,
     false},
    {ReceiveGradient, "RB", "receive-gradient", Lane::Pipeline, true, true, Layers::None, false, false, false,
     false},
    {ReduceGradient, "AR", "reduce-gradient", Lane::DataParallel, true, false, Layers::Range, false, true,
     false, false},
    {ReduceScatterGradient, "RS", "reduce-scatter-gradient", Lane::DataParallel, true, false, Layers::Range,
     false, true, false, false},
    {ReduceScatterRound, "RR", "reduce-scatter-round", Lane::DataParallel, true, true, Layers::Range, false,
     true, false, false},
    {GatherParameters, "AG", "gather-parameters", Lane::DataParallel, true, false, Layers::Range, false, true,
     false, false},
    {GatherForward, "GF", "gather-forward", Lane::DataParallel, true, true, Layers::Range, false, true, false,
     false},
    {GatherBackward, "GB", "gather-backward", Lane::DataParallel, true, true, Layers::Range, false, true,
     false, false},
    {ReduceTied, "TR", "reduce-tied", Lane::DataParallel, false, false, Layers::None, false, true, false,
     false},
    {GatherTiedRows, "TW", "gather-tied-rows", Lane::DataParallel, false, false, Layers::None, false, true,
     false, false},
    {ReduceTiedOutput, "TO", "reduce-tied-output", Lane::DataParallel, false, false, Layers::None, false,
     true, false, false},
    {ReduceScatterTiedOutput, "TS", "reduce-scatter-tied-output", Lane::DataParallel, false, false,
     Layers::None, false, true, false, false},
    {GatherTied, "TG", "gather-tied", Lane::DataParallel, false, false, Layers::None, false, true, false,
     false},
    {CurvatureA, "KA", "curvature-a", Lane::Compute, true, true, Layers::One, true, false, true, false},
    {CurvatureB, "KB", "curvature-b", Lane::Compute, true, true, Layers::One, true, false, true, false},
    {ReduceCurvature, "KR", "reduce-curvature", Lane::DataParallel, true, false, Layers::One, true, true,
     true, false},
    {Invert, "KI", "invert", Lane::Compute, true, false, Layers::One, true, false, true, true},
    {InvertLayers, "KL", "invert-layers", Lane::Compute, true, false, Layers::Range, false, false, true,
     false},
    {AccumulateFactor, "SA", "accumulate-factor", Lane::Compute, true, false, Layers::Range, false, false,
     false, false},
    {InverseRoot, "SR", "inverse-root", Lane::Compute, true, false, Layers::One, true, false, true, true},
    {Precondition, "P", "precondition", Lane::Compute, true, false, Layers::Range, false, false, true, false},
    {GatherPreconditioned, "PG", "gather-preconditioned", Lane::DataParallel, true, false, Layers::Range,
     false, true, false, false},
    {SquareGradient, "NS", "square-gradient", Lane::Compute, true, false, Layers::Range, false, false, false,
     false},
    {Agree, "N", "agree", Lane::DataParallel, false, false, Layers::None, false, true, false, false},
    {UpdateMoments, "UM", "update-moments", Lane::Compute, true, false, Layers::Range, false, false, false,
     false},
    {ReduceTensorNorms, "TN", "reduce-tensor-norms", Lane::DataParallel, true, false, Layers::Range, false,
     true, false, false},
    {Update, "U", "update", Lane::Compute, true, false, Layers::Range, false, false, false, false},
    {ExchangeData, "X", "exchange-data", Lane::Copy, false, false, Layers::None, false, true, false, false},
}};

constexpr bool traits_stand_in_order() {
  for (std::size_t i = 0; i < kTraits.size(); ++i) {
    if (static_cast<std::size_t>(kTraits[i].type) != i) return false;
  }
  return true;
}
static_assert(traits_stand_in_order());

constexpr std::array<std::string_view, kNumLanes> kLaneNames = {"compute", "data", "pipe", "copy"};

}  // namespace

std::string_view lane_name(Lane lane) {
  return kLaneNames[static_cast<std::size_t>(lane)];
}

std::optional<Lane> lane_named(std::string_view name) {
  for (std::size_t i = 0; i < kNumLanes; ++i) {
    if (kLaneNames[i] == name) return static_cast<Lane>(i);
  }
  return std::nullopt;
}

const ActionTraits& traits_of(ActionType type) {
  return kTraits[static_cast<std::size_t>(type)];
}

std::span<const ActionTraits> all_action_traits() {
  return kTraits;
}

std::optional<ActionType> action_type_named(std::string_view code) {
  for (const ActionTraits& traits : kTraits) {
    if (traits.code == code) return traits.type;
  }
  return std::nullopt;
}

}  // namespace plenum::schedule
