#include "plenum/optim/kfac.h"

#include <array>

#include "plenum/base/check.h"
#include "plenum/kernels/precondition.h"
#include "plenum/kernels/spd_inverse.h"
#include "plenum/kernels/step_scalars.h"
#include "plenum/tensor/copy.h"

namespace plenum::optim {
namespace {

using kernels::InverseState;
using tensor::TensorView;

/// The first elements of a flat buffer as a tensor of that shape.
TensorView shaped(const TensorView& flat, const tensor::Shape& shape) {
  return {flat.first_rows(shape.num_elements()).raw(), flat.dtype(), shape};
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
  return piece.num_rows_a == 0 ? 0.0 : 1.0 / static_cast<double>(piece.num_rows_a);
}

/// T^2 / n, where n of the T rows are covered.
double scale_of_b(const InversionPiece& piece) {
  const auto rows = static_cast<double>(piece.num_rows);
  return piece.num_rows_b == 0 ? 0.0 : rows * rows / static_cast<double>(piece.num_rows_b);
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
  SumState& state = layers_[map.layer].a[place_of(map, rows.step)][first_of_input(map)];
  add(stream, state, sum_a_DD(map, rows.step), rows);
}

void Kfac::add_error(const tensor::Stream& stream, const MapId& map, const CurvatureRows& rows) {
  SumState& state = layers_[map.layer].b[place_of(map, rows.step)][map.map];
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

void Kfac::damp(const tensor::Stream& stream, const MapId& map, const InversionPiece& piece) const {
  const memory::KfacMap& owned = own(map);
  kernels::damp_factors(stream, {.sum_a_DD = sum_a_DD(map, piece.statistics_step),
                                 .sum_b_EE = sum_b_EE(map, piece.statistics_step),
                                 .a_scale = scale_of_a(piece),
                                 .b_scale = scale_of_b(piece),
                                 .running = running(owned),
                                 .damping = options_.damping,
                                 .a_DD = owned.new_inverse_a_DD,
                                 .b_EE = owned.new_inverse_b_EE,
                                 .state_C = owned.state_C});
}

void Kfac::fold(const tensor::Stream& stream, const MapId& map, const InversionPiece& piece) const {
  if (!options_.average) return;
  kernels::fold_factors(stream, {.sum_a_DD = sum_a_DD(map, piece.statistics_step),
                                 .sum_b_EE = sum_b_EE(map, piece.statistics_step),
                                 .a_scale = scale_of_a(piece),
                                 .b_scale = scale_of_b(piece),
                                 .running = running(own(map)),
                                 .state_C = own(map).state_C});
}

void Kfac::invert(const tensor::Stream& stream, const MapId& map, const InversionPiece& piece) {
  const memory::KfacMap& owned = own(map);
  if (piece.piece == 0) damp(stream, map, piece);
  const std::array<TensorView, 2> matrices = {owned.new_inverse_a_DD, owned.new_inverse_b_EE};
  constexpr std::array<InverseState, 2> kPivots = {InverseState::LeastPivotA, InverseState::LeastPivotB};
  const InversionSteps steps(matrices[0].size(0), matrices[1].size(0));
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const auto [begin, end] = steps.of_piece(i, piece.piece, piece.num_pieces);
    const TensorView panels_2NP = shaped(memory_.panels, {2, matrices[i].size(0), kernels::kInversePanel});
    kernels::invert_spd(stream, {.first_step = begin,
                                 .end_step = end,
                                 .matrix_NN = matrices[i],
                                 .panels_2NP = panels_2NP,
                                 .least_pivot = kPivots[i],
                                 .state_C = owned.state_C});
  }
  if (piece.piece + 1 != piece.num_pieces) return;
  kernels::TakeInverse take = exchange(owned);
  if (piece.statistics_step == piece.step && settled_ != piece.step) {
    // Whether the step counts is not yet known.
    kernels::take_inverse(stream, take);
    unsettled_.push_back({map, piece});
  } else {
    take.skipped_1 = skipped_of(piece.statistics_step);
    kernels::take_inverse(stream, take);
    fold(stream, map, piece);
  }
}

void Kfac::precondition(const tensor::Stream& stream, const MapId& map, const TensorView& gradient_ED) const {
  const memory::KfacMap& owned = own(map);
  kernels::precondition(stream,
                        {.inverse_a_DD = owned.inverse_a_DD,
                         .inverse_b_EE = owned.inverse_b_EE,
                         .state_C = owned.state_C,
                         .gradient_ED = gradient_ED,
                         .work_2ED = shaped(memory_.work, {2, gradient_ED.size(0), gradient_ED.size(1)})});
}

void Kfac::settle(const tensor::Stream& stream, std::uint64_t step, const TensorView& scalars_C) {
  const TensorView skipped_1 = skipped_of(step);
  tensor::copy(stream, kernels::step_scalar(scalars_C, kernels::StepScalar::IsSkipped), skipped_1);
  for (const Unsettled& inversion : unsettled_) {
    kernels::TakeInverse taken = exchange(own(inversion.map));
    taken.skipped_1 = skipped_1;
    kernels::return_inverse(stream, {taken});
    fold(stream, inversion.map, inversion.piece);
  }
  unsettled_.clear();
  settled_ = step;
}

}  // namespace plenum::optim
