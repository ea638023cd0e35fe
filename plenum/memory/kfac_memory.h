#pragma once

#include <cstdint>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/tensor/memory_plan.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::memory {

// What K-FAC keeps of the linear maps of the layers that a rank holds. D input width, E output width of a
// map, which is factor_shapes()' of that index.

/// Whether second moments are averaged over refreshes.
enum class RunningAverages : bool { No, Yes };

/// A map of which the rank makes the inverses. Matrices are Float32.
struct KfacMap {
  tensor::TensorView inverse_a_DD, inverse_b_EE;          ///< in use
  tensor::TensorView new_inverse_a_DD, new_inverse_b_EE;  ///< under way
  tensor::TensorView average_a_DD, average_b_EE;          ///< left out where there are none
  tensor::TensorView state_C;                             ///< Float64: kernels::InverseState

  /// Left out of a map that another rank owns.
  explicit operator bool() const { return static_cast<bool>(state_C); }
};

/// The second moments of a layer's inputs and errors, by map. Maps with the same input share their A.
struct KfacSums {
  std::vector<tensor::TensorView> a_DD, b_EE;
};

struct KfacLayer {
  std::vector<KfacMap> maps;
  std::vector<KfacSums> sums;  ///< of each refresh under way: schedule::Refreshes
};

struct KfacMemory {
  std::vector<KfacLayer> layers;     ///< by the model's; empty where the rank does not hold it
  tensor::TensorView panels;         ///< kernels::InvertSpd's, for all that is inverted at once
  tensor::TensorView work;           ///< kernels::Precondition's, for all own maps of a shape
  tensor::TensorView wire;           ///< where a map's sums travel, or a layer's gradients: several holders
  tensor::TensorView skipped_steps;  ///< Float64: whether each of the last steps was skipped
};

/// Which of a layer's maps reads the same input first: the map itself, or the first of queries, keys and
/// values.
std::size_t first_map_of_input(const describe::Layer& layer, std::size_t map);

/// Lays it out; nothing where the schedule has no K-FAC.
KfacMemory plan_kfac_memory(const describe::ModelDescription& model, const schedule::Schedule& schedule,
                            schedule::Rank rank, RunningAverages averages, tensor::MemoryPlan& plan);

}  // namespace plenum::memory
