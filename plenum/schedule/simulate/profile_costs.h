#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/simulate/cost_model.h"
#include "plenum/schedule/simulate/factor_shares.h"
#include "plenum/schedule/simulate/layer_profile.h"

namespace plenum::schedule {

/// What communication costs: every rank has a link of its own; nothing shares it but what stands in one lane.
/// By default it is free.
struct CommunicationCosts {
  double latency_seconds = 0;  ///< of one message
  double bytes_per_second = std::numeric_limits<double>::infinity();
  double boundary_bytes = 0;  ///< between two stages, for a micro-batch of mean size, one way
  /// Gradients of a layer, as they are reduced; absent: the profile's parameter_bytes.
  std::optional<double> gradient_bytes_per_layer = std::nullopt;
  double tied_bytes = 0;      ///< of the parameter that the first and the last stage share
  double exchange_bytes = 0;  ///< of sequences that a rank exchanges for the next step
};

/// How a layer's measured times become those of actions.
struct ProfileOptions {
  CommunicationCosts communication = {};
  /// The part of a backward that is the input gradient, when it is split; the rest is the weight gradient.
  double input_gradient_share = 0.5;
  /// The part of a forward that computes the MLP's inner activations again: 8 of the 24 D^2 that the products
  /// of a BERT layer take for a token.
  double mlp_share = 1.0 / 3;
  /// An inverse root (Shampoo, SOAP) as a multiple of the inversion of the same factors.
  double inverse_root_factor = 1;
  double update_seconds_per_layer = 0;  ///< with the gradient's squares, which are read once before it
  /// Those of a layer that have factors; none: there is no second-order work.
  std::vector<LinearMap> maps = {};
};

/// Durations of actions from the costs of a layer, all layers alike.
///
/// A forward, backward or curvature grows with the size of its micro-batch where sizes are given; the profile
/// is taken as that of the mean size. A linear map's part of curvature, inversion and preconditioning is its
/// FactorShares. Preconditioning and AccumulateFactor (the same products) cost what the rank owns.
/// Collectives over n ranks are rings: an all-reduce takes 2 (n-1)/n bytes / bandwidth + 2 (n-1) latency, a
/// reduce-scatter or gather half of that; agreement takes 2 ceil(log2 n) latencies.
///
/// Only placement, layers and micro-batch sizes of the schedule matter, so the costs of a schedule are also
/// those of what is made from it by filling.
class ProfileCosts final : public CostModel {
 public:
  /// Borrows nothing. Throws UserError if the schedule counts other factors than the options have maps, or an
  /// option is out of its range.
  ProfileCosts(const Schedule& schedule, const LayerCosts& layer, const ProfileOptions& options = {});

  double seconds(Rank rank, const Action& action) const override;
  double latency_seconds(Rank from, Rank to) const override;

  const LayerCosts& layer() const { return layer_; }

 private:
  double micro_batch_scale(MicroBatchId micro_batch) const;
  /// What of a layer's work the maps that the rank owns take together, over the action's layers. A map's
  /// share is a function of FactorShares.
  using ShareOfMap = double (FactorShares::*)(std::size_t) const;
  double owned_layers(Rank rank, const Action& action, ShareOfMap share_of) const;
  double gather_seconds(double bytes, std::size_t num_ranks) const;
  double all_reduce_seconds(double bytes, std::size_t num_ranks) const;
  /// A sum over so few numbers that only messages count.
  double few_numbers_seconds(std::size_t num_ranks) const;
  double collective_seconds(const Action& action, double num_layers) const;

  LayerCosts layer_;
  ProfileOptions options_;
  FactorShares shares_;
  StageLayers layers_;
  double gradient_bytes_per_layer_;
  bool is_sharded_;
  bool has_tensor_norms_;
  double recomputed_share_;  ///< of a forward
  std::size_t num_ranks_;
  std::size_t num_tied_ranks_ = 0;
  std::vector<std::vector<Rank>> holders_;  ///< of each stage, ascending
  std::vector<double> scales_;              ///< of each micro-batch; empty when all are alike
};

}  // namespace plenum::schedule
