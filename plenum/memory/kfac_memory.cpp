#include "plenum/memory/kfac_memory.h"

#include <algorithm>
#include <functional>
#include <map>

#include "plenum/base/check.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/workspace/kronecker.h"

namespace plenum::memory {
namespace {

using describe::FactorShape;
using schedule::LayerId;
using schedule::StageId;
using tensor::DType;
using tensor::MemoryPlan;
using tensor::TensorView;

constexpr const char* kFactors = "K-FAC";

TensorView plan_square(std::int64_t size, MemoryPlan& plan) {
  return plan.add(kFactors, DType::Float32, {size, size});
}

KfacMap plan_map(const FactorShape& shape, RunningAverages averages, MemoryPlan& plan) {
  const std::int64_t D = shape.in_width;
  const std::int64_t E = shape.out_width;
  KfacMap map{.inverse_a_DD = plan_square(D, plan),
              .inverse_b_EE = plan_square(E, plan),
              .new_inverse_a_DD = plan_square(D, plan),
              .new_inverse_b_EE = plan_square(E, plan),
              .average_a_DD = {},
              .average_b_EE = {},
              .state_C = plan.add(kFactors, DType::Float64, {workspace::kNumInverseStates})};
  if (averages == RunningAverages::Yes) {
    map.average_a_DD = plan_square(D, plan);
    map.average_b_EE = plan_square(E, plan);
  }
  return map;
}

KfacSums plan_sums(const describe::Layer& layer, const std::vector<FactorShape>& shapes, MemoryPlan& plan) {
  KfacSums sums;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t first = first_map_of_input(layer, i);
    sums.a_DD.push_back(first == i ? plan_square(shapes[i].in_width, plan) : sums.a_DD[first]);
    sums.b_EE.push_back(plan_square(shapes[i].out_width, plan));
  }
  return sums;
}

/// The sizes of what all maps share.
struct Largest {
  std::int64_t sums = 0;           ///< of a map
  std::int64_t layer_weights = 0;  ///< of all maps of a layer

  void add(const std::vector<FactorShape>& shapes) {
    std::int64_t of_layer = 0;
    for (const auto& [D, E] : shapes) {
      sums = std::max(sums, D * D + E * E);
      of_layer += D * E;
    }
    layer_weights = std::max(layer_weights, of_layer);
  }
};

/// What the rank owns, for the room that it is worked on in.
struct OwnMaps {
  std::vector<std::int64_t> sizes;               ///< of all factors
  std::map<std::int64_t, std::int64_t> weights;  ///< maps by how many weights they have

  void add(const FactorShape& shape) {
    sizes.insert(sizes.end(), {shape.in_width, shape.out_width});
    ++weights[shape.in_width * shape.out_width];
  }

  /// Whole layers are inverted at once, the widest factors first; else one factor is.
  std::int64_t panels(const schedule::RankProgram& rank, tensor::Device device) {
    const std::span<const schedule::Action> actions = rank.lane(schedule::Lane::Compute).actions();
    const bool inverts_layers = std::ranges::any_of(actions, [](const schedule::Action& action) {
      return action.type == schedule::ActionType::InvertLayers;
    });
    std::ranges::sort(sizes, std::greater());
    const std::size_t num_at_once = inverts_layers ? sizes.size() : std::min<std::size_t>(sizes.size(), 1);
    return workspace::inverse_room_elements(device, std::span(sizes).first(num_at_once));
  }
  std::int64_t work(tensor::Device device) const {
    std::int64_t most = 0;
    for (const auto& [num_weights, count] : weights)
      most = std::max(most, workspace::precondition_room_elements(device, num_weights, count));
    return most;
  }
};

}  // namespace

std::size_t first_map_of_input(const describe::Layer& layer, std::size_t map) {
  std::size_t num_projected = 0;
  for (const describe::LinearMap& projection : layer.attention.projections)
    num_projected += static_cast<std::size_t>(projection.num_parts);
  return map < num_projected ? 0 : map;
}

KfacMemory plan_kfac_memory(const describe::ModelDescription& model, const schedule::Schedule& schedule,
                            schedule::Rank rank, RunningAverages averages, MemoryPlan& plan) {
  KfacMemory memory;
  if (schedule.problem.preconditioner != schedule::Preconditioner::Kfac) return memory;
  const schedule::Dataflow dataflow(schedule);
  const schedule::Refreshes refreshes(schedule);
  memory.layers.resize(model.layers.size());
  Largest largest;
  OwnMaps own;
  bool has_group = false;
  for (const StageId stage : schedule.ranks[rank.index()].stages) {
    has_group |= dataflow.holders(stage).size() > 1;
    // As gradients lie: then what belongs to a map of each layer lies at equal distances, in the same order.
    for (LayerId layer = dataflow.layers().end(stage); layer > dataflow.layers().first(stage);) {
      --layer.value;
      const describe::Layer& described = model.layers[layer.index()];
      const std::vector<FactorShape> shapes = factor_shapes(described);
      base::check(shapes.size() == schedule.problem.num_factors, "a layer has {} maps, the schedule {}",
                  shapes.size(), schedule.problem.num_factors);
      largest.add(shapes);
      KfacLayer& of_layer = memory.layers[layer.index()];
      for (std::uint16_t factor = 0; factor < shapes.size(); ++factor) {
        const bool is_own = dataflow.owner(stage, layer, factor) == rank;
        of_layer.maps.push_back(is_own ? plan_map(shapes[factor], averages, plan) : KfacMap());
        if (is_own) own.add(shapes[factor]);
      }
      for (std::size_t place = 0; place < refreshes.num_places(); ++place)
        of_layer.sums.push_back(plan_sums(described, shapes, plan));
    }
  }
  const tensor::Device device = plan.device();
  memory.panels = plan.add(kFactors, DType::Float32, {own.panels(schedule.ranks[rank.index()], device)});
  memory.work = plan.add(kFactors, DType::Float32, {own.work(device)});
  if (has_group) {
    memory.wire = plan.add(kFactors, DType::Float32, {std::max(largest.sums, largest.layer_weights)});
  }
  memory.skipped_steps =
      plan.add(kFactors, DType::Float64, {static_cast<std::int64_t>(refreshes.max_age()) + 2});
  return memory;
}

}  // namespace plenum::memory
