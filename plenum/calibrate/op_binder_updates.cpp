#include <array>
#include <memory>

#include "plenum/base/philox.h"
#include "plenum/calibrate/op_binder.h"
#include "plenum/kernels/orthonormalise.h"
#include "plenum/kernels/precondition.h"
#include "plenum/kernels/second_moment.h"
#include "plenum/kernels/spd_inverse.h"

namespace plenum::calibrate {

using plan::OpKind;
using tensor::Stream;
using tensor::TensorView;

namespace {

std::vector<double> step_scalars() {
  constexpr double kRate = 1e-4;
  std::vector<double> scalars(kernels::kNumStepScalars);
  scalars[kernels::index_of(kernels::StepScalar::LearningRate)] = kRate;
  scalars[kernels::index_of(kernels::StepScalar::GradientScale)] = 1;
  scalars[kernels::index_of(kernels::StepScalar::Correction1)] = 1;
  scalars[kernels::index_of(kernels::StepScalar::Correction2)] = 1;
  return scalars;
}

}  // namespace

std::vector<kernels::FlatRange> update_ranges(std::int64_t num_parameters) {
  constexpr std::int64_t kParameters = std::int64_t{1} << 20;
  std::vector<kernels::FlatRange> ranges;
  for (std::int64_t begin = 0; begin < num_parameters; begin += kParameters) {
    ranges.push_back({begin, std::min(num_parameters, begin + kParameters), true});
  }
  return ranges;
}

BoundOp OpBinder::update() {
  const std::int64_t N = sizes_.T;
  const auto ranges = std::make_shared<const std::vector<kernels::FlatRange>>(update_ranges(N));
  const std::vector<std::int64_t> chunks = kernels::optimizer_chunks(*ranges);
  const kernels::AdamStep args{
      .ranges = *ranges,
      .work = {.chunks_C4 = is_gpu() ? room_.of(chunks, {std::ssize(chunks) / 4, 4}) : TensorView()},
      .gradient_N = floats({N}),
      .weight_N = floats({N}),
      .first_moment_N = floats({N}),
      .second_moment_N = room_.random_squares({N}),
      .compute_weight_N = precision_.shares_weights() ? TensorView() : room_.output(weight_dtype(), {N}),
      .scalars_C = room_.of(step_scalars())};
  const auto step = kind_ == OpKind::AdamW ? kernels::adam_step : kernels::lamb_step;
  return {[ranges, args, step](const Stream& stream) { step(stream, args); }, {}};
}

BoundOp OpBinder::square_gradient() {
  return {[args = kernels::GradientSquares{.gradient_N = floats({sizes_.T}),
                                           .scalars_C = room_.of(step_scalars())}](const Stream& stream) {
            kernels::add_gradient_squares(stream, args);
          },
          {}};
}

BoundOp OpBinder::second_moment() {
  const std::int64_t T = sizes_.T, D = sizes_.D;
  const TensorView x_TD = activation({T, D});
  const TensorView moment_DD = floats({D, D});
  return {[=](const Stream& stream) {
            const std::array<kernels::RowRange, 1> rows = {{{0, T}}};
            kernels::add_second_moment(stream, {.x_TW = x_TD, .rows = rows, .moment_DD = moment_DD});
          },
          {}};
}

/// The identity and a little of everything, so that its inverse is much the same.
TensorView OpBinder::positive_matrix(std::int64_t size) {
  if (room_.only_counts()) return floats_out({size, size});
  constexpr std::size_t kNumbers = 4096;
  const base::RandomFunction random(3, base::Purpose::Initialisation);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < kNumbers; ++i) numbers.push_back(base::to_unit_interval(random(i)) - 0.5);
  std::vector<float> matrix(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      const auto pair = static_cast<std::size_t>(std::max(i, j) * 31 + std::min(i, j) * 17) % kNumbers;
      matrix[static_cast<std::size_t>(i * size + j)] =
          static_cast<float>(numbers[pair] / static_cast<double>(size) + (i == j ? 1 : 0));
    }
  }
  return room_.of(matrix, {size, size});
}

TensorView OpBinder::inverse_state() {
  std::vector<double> state(kernels::kNumInverseStates);
  state[kernels::index_of(kernels::InverseState::IsReady)] = 1;
  return room_.of(state);
}

BoundOp OpBinder::inverse() {
  const std::int64_t D = sizes_.D;
  auto matrices = std::make_shared<std::vector<kernels::SpdMatrix>>();
  for (std::int64_t i = 0; i < sizes_.T; ++i) {
    matrices->push_back({positive_matrix(D), kernels::InverseState::LeastPivotA, inverse_state()});
  }
  const std::vector<std::int64_t> all_sizes(static_cast<std::size_t>(sizes_.T), D);
  const TensorView room = floats_out({workspace::inverse_room_elements(room_.device(), all_sizes)});
  return {[matrices, room, D](const Stream& stream) {
            kernels::invert_spd(
                stream, {.end_step = kernels::num_inverse_steps(D), .matrices = *matrices, .room = room});
          },
          {}};
}

BoundOp OpBinder::precondition() {
  const std::int64_t D = sizes_.D, E = sizes_.E;
  const kernels::PreconditionedMap map{.inverse_a_DD = positive_matrix(D),
                                       .inverse_b_EE = positive_matrix(E),
                                       .state_C = inverse_state(),
                                       .gradient_ED = floats({E, D})};
  const TensorView room = floats_out({workspace::precondition_room_elements(room_.device(), D * E, 1)});
  return {[map, room](const Stream& stream) {
            kernels::precondition(stream, {.maps = {&map, 1}, .room = room});
          },
          {}};
}

BoundOp OpBinder::orthonormalise() {
  const tensor::TensorView x_TDD = floats({sizes_.T, sizes_.D, sizes_.D});
  return {[x_TDD](const Stream& stream) { kernels::orthonormalise(stream, {.x_BNN = x_TDD}); }, {}};
}

}  // namespace plenum::calibrate
