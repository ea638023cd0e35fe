#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/kernels/kronecker_factors.h"
#include "plenum/kernels/second_moment.h"
#include "plenum/memory/kfac_memory.h"
#include "plenum/optim/kfac_options.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::optim {

/// A linear map of a layer of the model, in the order of describe::factor_shapes().
struct MapId {
  std::size_t layer = 0;
  std::size_t map = 0;
};

/// The gradient of its weight, [E, D].
struct MapGradient {
  MapId map;
  tensor::TensorView gradient_ED;
};

/// What is summed for a map: the rows of a micro-batch of a step.
struct CurvatureRows {
  tensor::TensorView x_TW;  ///< as kernels::AddSecondMoment
  std::int64_t first_column = 0;
  std::span<const kernels::RowRange> rows;
  std::size_t micro_batch = 0;
  std::uint64_t step = 0;
};

/// Work on the inverses of a map.
struct InversionPiece {
  std::size_t piece = 0;
  std::size_t num_pieces = 1;
  std::uint64_t statistics_step = 0;
  std::uint64_t step = 0;     ///< that does it
  std::int64_t num_rows = 0;  ///< of the statistics' global batch that the map computes, all covered
};

/// Of which map.
struct Inversion {
  MapId map;
  InversionPiece piece;
};

/// K-FAC of the linear maps that a rank holds: sums of second moments, damped inverses of those that it owns,
/// and gradients preconditioned by them. See docs/math/kfac.md.
///
/// A refresh takes statistics of one step. Its inverses are used from the moment they are made; those of a
/// step that is skipped are given back, and never become part of running averages. Everything is decided
/// where the kernels run: nothing waits for a device.
class Kfac {
 public:
  /// Borrows model and memory.
  Kfac(const KfacOptions& options, const describe::ModelDescription& model,
       const schedule::Schedule& schedule, const memory::KfacMemory& memory);

  /// Adds the second moment of a map's input; nothing where that of the same rows was added for another map.
  void add_input(const tensor::Stream& stream, const MapId& map, const CurvatureRows& rows);
  /// Adds the second moment of the gradient at a map's output.
  void add_error(const tensor::Stream& stream, const MapId& map, const CurvatureRows& rows);
  /// The sums of a step, complete when all of its rows have been added: [D, D] and [E, E].
  const tensor::TensorView& sum_a_DD(const MapId& map, std::uint64_t step) const;
  const tensor::TensorView& sum_b_EE(const MapId& map, std::uint64_t step) const;

  /// Does a piece of an inversion. The last one puts the new inverses into use.
  void invert(const tensor::Stream& stream, const Inversion& inversion);
  /// The same of several maps at once, in one piece each: the bytes are those of one after the other.
  void invert_whole(const tensor::Stream& stream, std::span<const Inversion> inversions);
  /// Preconditions gradients by the newest inverses; leaves one as it is where there are none.
  void precondition(const tensor::Stream& stream, std::span<const MapGradient> gradients) const;
  /// To be called when it has been decided whether a step is skipped.
  void settle(const tensor::Stream& stream, std::uint64_t step, const tensor::TensorView& scalars_C);

  /// The first of a layer's maps with the same input.
  std::size_t first_of_input(const MapId& map) const {
    return memory::first_map_of_input(model_.layers[map.layer], map.map);
  }
  bool owns(const MapId& map) const { return static_cast<bool>(own(map)); }

 private:
  /// What has been added to the sums of a refresh.
  struct SumState {
    std::optional<std::uint64_t> step = std::nullopt;
    std::vector<bool> has_micro_batch = {};
  };
  /// By the place of the refresh, and in it by map.
  struct LayerState {
    std::vector<std::vector<SumState>> a, b;
  };

  void add(const tensor::Stream& stream, SumState& state, const tensor::TensorView& sum,
           const CurvatureRows& rows) const;
  const memory::KfacMap& own(const MapId& map) const { return memory_.layers[map.layer].maps[map.map]; }
  const memory::KfacSums& sums(const MapId& map, std::uint64_t step) const {
    return memory_.layers[map.layer].sums[refreshes_.place_of(step)];
  }
  kernels::RunningFactors running(const memory::KfacMap& map) const;
  kernels::TakeInverse exchange(const memory::KfacMap& map) const;
  tensor::TensorView skipped_of(std::uint64_t step) const;
  void damp(const tensor::Stream& stream, std::span<const Inversion> inversions) const;
  void take(const tensor::Stream& stream, std::span<const Inversion> inversions);
  void fold(const tensor::Stream& stream, std::span<const Inversion> inversions) const;

  KfacOptions options_;
  const describe::ModelDescription& model_;
  const memory::KfacMemory& memory_;
  schedule::Refreshes refreshes_;
  std::size_t num_micro_batches_;
  std::vector<LayerState> layers_;
  std::vector<Inversion> unsettled_;  ///< of the running step, whose statistics are of the same step
};

}  // namespace plenum::optim
