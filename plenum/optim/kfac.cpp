#include "plenum/optim/kfac.h"

#include <algorithm>
#include <array>
#include <functional>

#include "plenum/base/check.h"
#include "plenum/kernels/precondition.h"
#include "plenum/kernels/spd_inverse.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/tensor/copy.h"

namespace plenum::optim {
namespace {

using kernels::InverseState;
using tensor::TensorView;

/// The new inverses of a map, while they are made.
std::array<kernels::SpdMatrix, 2> factors_of(const memory::KfacMap& map) {
  return {{{map.new_inverse_a_DD, InverseState::LeastPivotA, map.state_C},
           {map.new_inverse_b_EE, InverseState::LeastPivotB, map.state_C}}};
}

/// The steps of inverting A and then B, cut into pieces of equal work.
class InversionSteps {
 public:
  InversionSteps(std::int64_t D, std::int64_t E) : sizes_{D, E} {}

  /// Those of one of the two matrices that belong to a piece.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  Range of_piece(std::size_t matrix, std::size_t piece, std::size_t num_pieces) const {
    const std::int64_t num_steps = kernels::num_inverse_steps(sizes_[matrix]);
    const auto first_of = [&](std::size_t index) {
      std::int64_t step = 0;
      while (step < num_steps && piece_of(matrix, step, num_pieces) < index) ++step;
      return step;
    };
    return {first_of(piece), first_of(piece + 1)};
  }

 private:
  /// The piece in which a step begins. Every step costs as much as its matrix has elements.
  std::size_t piece_of(std::size_t matrix, std::int64_t step, std::size_t num_pieces) const {
    const std::int64_t before = (matrix == 1 ? cost_of(0) : 0) + step * sizes_[matrix] * sizes_[matrix];
    const std::int64_t total = cost_of(0) + cost_of(1);
    return static_cast<std::size_t>(before * static_cast<std::int64_t>(num_pieces) / total);
  }
  std::int64_t cost_of(std::size_t matrix) const {
    return kernels::num_inverse_steps(sizes_[matrix]) * sizes_[matrix] * sizes_[matrix];
  }

  std::array<std::int64_t, 2> sizes_;
};

double scale_of_a(const InversionPiece& piece) {
  return piece.num_rows == 0 ? 0.0 : 1.0 / static_cast<double>(piece.num_rows);
}

/// T^2 / n, where all of the T rows are covered.
double scale_of_b(const InversionPiece& piece) {
  return static_cast<double>(piece.num_rows);
}

}  // namespace

Kfac::Kfac(const KfacOptions& options, const describe::ModelDescription& model,
           const schedule::Schedule& schedule, const memory::KfacMemory& memory)
    : options_(options),
      model_(model),
      memory_(memory),
      refreshes_(schedule),
      num_micro_batches_(schedule.problem.num_micro_batches) {
  for (const memory::KfacLayer& layer : memory.layers) {
    const std::vector<std::vector<SumState>> none(layer.sums.size(),
                                                  std::vector<SumState>(layer.maps.size()));
    layers_.push_back({.a = none, .b = none});
  }
}

void Kfac::add(const tensor::Stream& stream, SumState& state, const TensorView& sum,
               const CurvatureRows& rows) const {
  if (state.step != rows.step) {
    state.step = rows.step;
    state.has_micro_batch.assign(num_micro_batches_, false);
    tensor::set_zero(stream, sum);
  }
  if (state.has_micro_batch[rows.micro_batch]) return;
  state.has_micro_batch[rows.micro_batch] = true;
  if (rows.rows.empty()) return;
  kernels::add_second_moment(
      stream, {.x_TW = rows.x_TW, .first_column = rows.first_column, .rows = rows.rows, .moment_DD = sum});
}

void Kfac::add_input(const tensor::Stream& stream, const MapId& map, const CurvatureRows& rows) {
  SumState& state = layers_[map.layer].a[refreshes_.place_of(rows.step)][first_of_input(map)];
  add(stream, state, sum_a_DD(map, rows.step), rows);
}

void Kfac::add_error(const tensor::Stream& stream, const MapId& map, const CurvatureRows& rows) {
  SumState& state = layers_[map.layer].b[refreshes_.place_of(rows.step)][map.map];
  add(stream, state, sum_b_EE(map, rows.step), rows);
}

const TensorView& Kfac::sum_a_DD(const MapId& map, std::uint64_t step) const {
  return sums(map, step).a_DD[map.map];
}

const TensorView& Kfac::sum_b_EE(const MapId& map, std::uint64_t step) const {
  return sums(map, step).b_EE[map.map];
}

kernels::RunningFactors Kfac::running(const memory::KfacMap& map) const {
  return {.a_DD = map.average_a_DD, .b_EE = map.average_b_EE, .keep = options_.average.value_or(0)};
}

kernels::TakeInverse Kfac::exchange(const memory::KfacMap& map) const {
  return {.new_a_DD = map.new_inverse_a_DD,
          .new_b_EE = map.new_inverse_b_EE,
          .a_DD = map.inverse_a_DD,
          .b_EE = map.inverse_b_EE,
          .skipped_1 = {},
          .state_C = map.state_C};
}

TensorView Kfac::skipped_of(std::uint64_t step) const {
  const TensorView& steps = memory_.skipped_steps;
  return steps.rows(static_cast<std::int64_t>(step) % steps.size(0), 1);
}

void Kfac::damp(const tensor::Stream& stream, std::span<const Inversion> inversions) const {
  std::vector<kernels::DampFactors> maps;
  for (const auto& [map, piece] : inversions) {
    const memory::KfacMap& owned = own(map);
    maps.push_back({.sum_a_DD = sum_a_DD(map, piece.statistics_step),
                    .sum_b_EE = sum_b_EE(map, piece.statistics_step),
                    .a_scale = scale_of_a(piece),
                    .b_scale = scale_of_b(piece),
                    .running = running(owned),
                    .damping = options_.damping,
                    .a_DD = owned.new_inverse_a_DD,
                    .b_EE = owned.new_inverse_b_EE,
                    .state_C = owned.state_C});
  }
  kernels::damp_factors(stream, maps);
}

void Kfac::fold(const tensor::Stream& stream, std::span<const Inversion> inversions) const {
  if (!options_.average) return;
  std::vector<kernels::FoldFactors> maps;
  for (const auto& [map, piece] : inversions) {
    maps.push_back({.sum_a_DD = sum_a_DD(map, piece.statistics_step),
                    .sum_b_EE = sum_b_EE(map, piece.statistics_step),
                    .a_scale = scale_of_a(piece),
                    .b_scale = scale_of_b(piece),
                    .running = running(own(map)),
                    .state_C = own(map).state_C});
  }
  kernels::fold_factors(stream, maps);
}

void Kfac::invert(const tensor::Stream& stream, const Inversion& inversion) {
  const auto& [map, piece] = inversion;
  if (piece.piece == 0) damp(stream, {&inversion, 1});
  const std::array<kernels::SpdMatrix, 2> matrices = factors_of(own(map));
  const InversionSteps steps(matrices[0].matrix_NN.size(0), matrices[1].matrix_NN.size(0));
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const auto [begin, end] = steps.of_piece(i, piece.piece, piece.num_pieces);
    kernels::invert_spd(stream, {.first_step = begin,
                                 .end_step = end,
                                 .matrices = std::span(matrices).subspan(i, 1),
                                 .room = memory_.panels});
  }
  if (piece.piece + 1 == piece.num_pieces) take(stream, {&inversion, 1});
}

void Kfac::invert_whole(const tensor::Stream& stream, std::span<const Inversion> inversions) {
  damp(stream, inversions);
  std::vector<kernels::SpdMatrix> matrices;
  for (const Inversion& inversion : inversions) {
    for (const kernels::SpdMatrix& factor : factors_of(own(inversion.map))) matrices.push_back(factor);
  }
  // Matrices of one size next to each other: as many are worked on at once, and take as many steps.
  std::ranges::stable_sort(matrices, std::greater(),
                           [](const kernels::SpdMatrix& matrix) { return matrix.matrix_NN.size(0); });
  if (matrices.empty()) return;
  kernels::invert_spd(stream, {.end_step = kernels::num_inverse_steps(matrices.front().matrix_NN.size(0)),
                               .matrices = matrices,
                               .room = memory_.panels});
  take(stream, inversions);
}

void Kfac::take(const tensor::Stream& stream, std::span<const Inversion> inversions) {
  std::vector<kernels::TakeInverse> taken;
  std::vector<Inversion> settled;
  for (const Inversion& inversion : inversions) {
    const InversionPiece& piece = inversion.piece;
    taken.push_back(exchange(own(inversion.map)));
    if (piece.statistics_step == piece.step) {
      // Whether the step counts is not yet known.
      unsettled_.push_back(inversion);
    } else {
      taken.back().skipped_1 = skipped_of(piece.statistics_step);
      settled.push_back(inversion);
    }
  }
  kernels::take_inverse(stream, taken);
  fold(stream, settled);
}

void Kfac::precondition(const tensor::Stream& stream, std::span<const MapGradient> gradients) const {
  std::vector<kernels::PreconditionedMap> maps;
  for (const auto& [map, gradient_ED] : gradients) {
    const memory::KfacMap& owned = own(map);
    maps.push_back({.inverse_a_DD = owned.inverse_a_DD,
                    .inverse_b_EE = owned.inverse_b_EE,
                    .state_C = owned.state_C,
                    .gradient_ED = gradient_ED});
  }
  kernels::precondition(stream, {.maps = maps, .room = memory_.work});
}

void Kfac::settle(const tensor::Stream& stream, std::uint64_t step, const TensorView& scalars_C) {
  const TensorView skipped_1 = skipped_of(step);
  tensor::copy(stream, kernels::step_scalar(scalars_C, kernels::StepScalar::IsSkipped), skipped_1);
  std::vector<kernels::ReturnInverse> taken;
  for (const Inversion& inversion : unsettled_) {
    taken.push_back({exchange(own(inversion.map))});
    taken.back().taken.skipped_1 = skipped_1;
  }
  kernels::return_inverse(stream, taken);
  fold(stream, unsettled_);
  unsettled_.clear();
}

}  // namespace plenum::optim
