#include "plenum/schedule/simulate/profile_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/schedule/core/dataflow.h"

namespace plenum::schedule {
namespace {

void require_options(const ProfileOptions& options) {
  const CommunicationCosts& communication = options.communication;
  base::require(communication.bytes_per_second > 0, "the bandwidth must be greater than zero: {} bytes/s",
                communication.bytes_per_second);
  const std::pair<const char*, double> values[] = {
      {"the latency", communication.latency_seconds},
      {"the bytes between two stages", communication.boundary_bytes},
      {"the bytes of a tied parameter", communication.tied_bytes},
      {"the bytes of an exchange", communication.exchange_bytes},
      {"the bytes of a layer's gradients", communication.gradient_bytes_per_layer.value_or(0)},
      {"the factor of an inverse root", options.inverse_root_factor},
      {"the seconds of a layer's update", options.update_seconds_per_layer}};
  for (const auto& [name, value] : values)
    base::require(value >= 0 && std::isfinite(value), "{} must be finite and not negative: {}", name, value);
  base::require(options.input_gradient_share >= 0 && options.input_gradient_share <= 1,
                "the input gradient's share of a backward must be between 0 and 1: {}",
                options.input_gradient_share);
  base::require(options.mlp_share >= 0 && options.mlp_share <= 1,
                "the MLP's share of a forward must be between 0 and 1: {}", options.mlp_share);
}

const ProfileOptions& checked(const ProfileOptions& options) {
  require_options(options);
  return options;
}

std::vector<double> scales_of(const std::vector<std::uint32_t>& sizes) {
  const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  std::vector<double> scales;
  for (const std::uint32_t size : sizes) {
    scales.push_back(total == 0 ? 0 : size * static_cast<double>(sizes.size()) / total);
  }
  return scales;
}

}  // namespace

ProfileCosts::ProfileCosts(const Schedule& schedule, const LayerCosts& layer, const ProfileOptions& options)
    : layer_(layer),
      options_(checked(options)),
      shares_(options_.maps),
      layers_(schedule.problem),
      gradient_bytes_per_layer_(
          options_.communication.gradient_bytes_per_layer.value_or(layer.parameter_bytes)),
      is_sharded_(is_sharded(schedule.problem)),
      has_tensor_norms_(schedule.problem.has_tensor_norms),
      recomputed_share_(schedule.problem.recomputation == Recomputation::Mlp ? options_.mlp_share : 1),
      num_ranks_(schedule.ranks.size()),
      holders_(schedule.num_stages()),
      scales_(scales_of(schedule.problem.micro_batch_sizes)) {
  const std::size_t num_factors = schedule.problem.num_factors;
  base::require(num_factors == 0 || num_factors == shares_.num_maps(),
                "the schedule has {} linear maps in a layer, the costs have {}", num_factors,
                shares_.num_maps());
  for (std::size_t rank = 0; rank < num_ranks_; ++rank) {
    for (const StageId stage : schedule.ranks[rank].stages) holders_[stage.index()].push_back(Rank::at(rank));
  }
  std::vector<Rank> tied;
  std::set_union(holders_.front().begin(), holders_.front().end(), holders_.back().begin(),
                 holders_.back().end(), std::back_inserter(tied));
  num_tied_ranks_ = tied.size();
}

double ProfileCosts::latency_seconds(Rank, Rank) const {
  return options_.communication.latency_seconds;
}

double ProfileCosts::micro_batch_scale(MicroBatchId micro_batch) const {
  return scales_.empty() ? 1 : scales_[micro_batch.index()];
}

double ProfileCosts::owned_layers(Rank rank, const Action& action, ShareOfMap share_of) const {
  const std::vector<Rank>& holders = holders_[action.stage.index()];
  const auto own = std::lower_bound(holders.begin(), holders.end(), rank);
  base::check(own != holders.end() && *own == rank, "the rank must hold the stage: rank={} stage={}",
              rank.value, action.stage.value);
  base::check(shares_.num_maps() > 0, "second-order work is of a layer without linear maps");
  const auto own_index = static_cast<std::size_t>(own - holders.begin());
  double sum = 0;
  for (LayerId layer = action.first_layer; layer < action.end_layer; ++layer.value) {
    const std::size_t layer_of_stage = layer.index() - layers_.first(action.stage).index();
    for (std::size_t map = 0; map < shares_.num_maps(); ++map) {
      if (owner_index(layer_of_stage, map, layers_.count(action.stage), holders.size()) == own_index) {
        sum += (shares_.*share_of)(map);
      }
    }
  }
  return sum;
}

/// Each rank passes on what it has or gathers, n-1 times a part of 1/n.
double ProfileCosts::gather_seconds(double bytes, std::size_t num_ranks) const {
  if (num_ranks < 2) return 0;
  const auto n = static_cast<double>(num_ranks);
  return (n - 1) / n * bytes / options_.communication.bytes_per_second +
         (n - 1) * options_.communication.latency_seconds;
}

double ProfileCosts::all_reduce_seconds(double bytes, std::size_t num_ranks) const {
  return 2 * gather_seconds(bytes, num_ranks);
}

double ProfileCosts::few_numbers_seconds(std::size_t num_ranks) const {
  return 2 * std::bit_width(num_ranks - 1) * options_.communication.latency_seconds;
}

double ProfileCosts::collective_seconds(const Action& action, double num_layers) const {
  const auto num_holders = [&] { return holders_[action.stage.index()].size(); };
  switch (action.type) {
    case ActionType::ReduceGradient:
      return all_reduce_seconds(num_layers * gradient_bytes_per_layer_, num_holders());
    case ActionType::ReduceScatterGradient:
    case ActionType::ReduceScatterRound:
    case ActionType::GatherParameters:
    case ActionType::GatherForward:
    case ActionType::GatherBackward:
    case ActionType::GatherPreconditioned:
      return gather_seconds(num_layers * gradient_bytes_per_layer_, num_holders());
    case ActionType::ReduceCurvature:
      return all_reduce_seconds(shares_.factor_size(action.factor) * layer_.factor_bytes, num_holders());
    case ActionType::ReduceTied:
    case ActionType::ReduceTiedOutput:
      return all_reduce_seconds(options_.communication.tied_bytes, num_tied_ranks_);
    case ActionType::ExchangeData:
      return gather_seconds(options_.communication.exchange_bytes, num_ranks_);
    case ActionType::ReduceTensorNorms:
      return few_numbers_seconds(num_holders());
    case ActionType::ReduceScatterTiedOutput:
    case ActionType::GatherTied:
      return gather_seconds(options_.communication.tied_bytes, num_tied_ranks_);
    case ActionType::GatherTiedRows:
      return few_numbers_seconds(num_tied_ranks_);
    default:
      return few_numbers_seconds(num_ranks_);
  }
}

double ProfileCosts::seconds(Rank rank, const Action& action) const {
  const double num_layers = action.end_layer.value - action.first_layer.value;
  switch (action.type) {
    case ActionType::Forward:
      return num_layers * layer_.forward_seconds * micro_batch_scale(action.micro_batch);
    case ActionType::Recompute:
      return num_layers * layer_.forward_seconds * recomputed_share_ * micro_batch_scale(action.micro_batch);
    case ActionType::Backward:
      return num_layers * layer_.backward_seconds * micro_batch_scale(action.micro_batch);
    case ActionType::InputGradient:
      return num_layers * layer_.backward_seconds * options_.input_gradient_share *
             micro_batch_scale(action.micro_batch);
    case ActionType::WeightGradient:
      return num_layers * layer_.backward_seconds * (1 - options_.input_gradient_share) *
             micro_batch_scale(action.micro_batch);
    case ActionType::SendActivation:
    case ActionType::SendGradient:
      return options_.communication.boundary_bytes * micro_batch_scale(action.micro_batch) /
             options_.communication.bytes_per_second;
    case ActionType::ReceiveActivation:
    case ActionType::ReceiveGradient:
      return 0;
    case ActionType::CurvatureA:
      return shares_.curvature_a(action.factor) * layer_.curvature_seconds *
             micro_batch_scale(action.micro_batch);
    case ActionType::CurvatureB:
      return shares_.curvature_b(action.factor) * layer_.curvature_seconds *
             micro_batch_scale(action.micro_batch);
    case ActionType::Invert:
      return shares_.inversion(action.factor) * layer_.inversion_seconds / action.num_pieces;
    case ActionType::InvertLayers:
      return owned_layers(rank, action, &FactorShares::inversion) * layer_.inversion_seconds;
    case ActionType::InverseRoot:
      return shares_.inversion(action.factor) * layer_.inversion_seconds * options_.inverse_root_factor /
             action.num_pieces;
    case ActionType::AccumulateFactor:
    case ActionType::Precondition:
      return owned_layers(rank, action, &FactorShares::precondition) * layer_.precondition_seconds;
    case ActionType::SquareGradient:
      return 0;
    case ActionType::UpdateMoments:
    case ActionType::Update: {
      const double num_shards =
          is_sharded_ ? static_cast<double>(holders_[action.stage.index()].size()) : 1.0;
      const double share = has_tensor_norms_ && num_shards > 1 ? 0.5 : 1;  // the other half is the moments'
      return share * num_layers * options_.update_seconds_per_layer / num_shards;
    }
    default:
      return collective_seconds(action, num_layers);
  }
}

}  // namespace plenum::schedule
