#include "plenum/pipeline/soap_work.h"

#include <array>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/tensor/copy.h"

namespace plenum::pipeline {

using optim::SoapSideViews;
using tensor::TensorView;

SoapWork::SoapWork(const schedule::Schedule& schedule, const optim::Optimizer& optimizer,
                   const std::vector<memory::DividedLayer>& divided, std::vector<TensorView> kept_factors)
    : optimizer_(optimizer), refreshes_(schedule), kept_factors_(std::move(kept_factors)) {
  std::int64_t begin = 0;
  for (const memory::DividedLayer& layer : divided) {
    std::vector<std::optional<std::size_t>>& of_maps = matrix_of_map_.emplace_back();
    of_maps.resize(schedule.problem.num_factors);
    for (const std::uint16_t map : layer.own_maps) {
      of_maps[map] = kept_begin_.size();
      kept_begin_.push_back(begin);
      for (const SoapSideViews& side : optimizer.soap()->sides(kept_begin_.size() - 1))
        begin += side.factor_NN ? side.factor_NN.num_elements() : 0;
    }
  }
}

TensorView SoapWork::kept(std::size_t matrix, std::size_t side, const TensorView& place) const {
  const std::array<SoapSideViews, 2> sides = optimizer_.soap()->sides(matrix);
  const TensorView& rows = sides[0].factor_NN;
  const std::int64_t begin = kept_begin_[matrix] + (side == 1 && rows ? rows.num_elements() : 0);
  const TensorView& like = sides[side].factor_NN;
  return {place.rows(begin, like.num_elements()).raw(), like.dtype(), like.shape()};
}

void SoapWork::accumulate(const ActionRun& run, const tensor::Stream& stream,
                          kernels::SoapFactors flat) const {
  const optim::Soap::Groups groups = optimizer_.own_groups({run.action.first_layer, run.action.end_layer});
  optimizer_.soap()->update_factors(stream, run.step, groups, flat);
  if (kept_factors_.empty()) return;
  for (schedule::LayerId layer = run.action.first_layer; layer < run.action.end_layer; ++layer.value) {
    if (!refreshes_.takes_statistics(run.step, layer)) continue;
    const TensorView& place = kept_factors_[refreshes_.place_of(run.step, layer)];
    for (const std::optional<std::size_t>& matrix : matrix_of_map_[layer.index()]) {
      if (matrix) keep_factors(stream, *matrix, place);
    }
  }
}

void SoapWork::keep_factors(const tensor::Stream& stream, std::size_t matrix, const TensorView& place) const {
  const std::array<SoapSideViews, 2> sides = optimizer_.soap()->sides(matrix);
  for (std::size_t side = 0; side < sides.size(); ++side) {
    if (sides[side].factor_NN) tensor::copy(stream, sides[side].factor_NN, kept(matrix, side, place));
  }
}

void SoapWork::refresh(const ActionRun& run, const tensor::Stream& stream,
                       const TensorView& scalars_C) const {
  if (run.data_step() == 0) return;
  const std::optional<std::size_t> matrix = matrix_of_map_[run.action.first_layer.index()][run.action.factor];
  base::check(matrix.has_value(), "another rank owns map {} of layer {}", run.action.factor,
              run.action.first_layer.value);
  if (run.action.num_pieces > 1) return refresh_in_pieces(run, stream, *matrix, scalars_C);
  const std::array<SoapSideViews, 2> sides = optimizer_.soap()->sides(*matrix);
  for (std::size_t side = 0; side < sides.size(); ++side) {
    if (!sides[side].factor_NN) continue;
    if (run.action.age == 0) {
      optimizer_.soap()->refresh(stream, sides[side], sides[side].factor_NN, scalars_C);
    } else {
      // A step that was skipped has left factors as they were.
      const TensorView& place = kept_factors_[refreshes_.place_of(run.data_step(), run.action.first_layer)];
      optimizer_.soap()->refresh(stream, sides[side], kept(*matrix, side, place), {});
    }
  }
}

void SoapWork::refresh_in_pieces(const ActionRun& run, const tensor::Stream& stream, std::size_t matrix,
                                 const TensorView& scalars_C) const {
  const std::array<SoapSideViews, 2> sides = optimizer_.soap()->sides(matrix);
  const TensorView& place = kept_factors_[refreshes_.place_of(run.data_step(), run.action.first_layer)];
  std::array<TensorView, 2> iterates;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    if (sides[side].factor_NN) iterates[side] = kept(matrix, side, place);
  }
  // Only the last piece changes bases, which a step that is skipped must not.
  const bool is_last = run.action.piece + 1 == run.action.num_pieces;
  const bool is_of_own_step = run.action.age == 0;
  optimizer_.soap()->refresh_in_pieces(
      stream, sides, iterates, {.piece = run.action.piece, .num_pieces = run.action.num_pieces},
      is_last && is_of_own_step ? tensor::ConstTensorView(scalars_C) : tensor::ConstTensorView());
}

}  // namespace plenum::pipeline
