#include "plenum/optim/soap.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::optim {
namespace {

using kernels::FlatMatrices;
using tensor::TensorView;

/// Of the first step: from the identity to eigenvectors, of all but neighbouring eigenvalues.
constexpr int kFirstIterations = 16;

/// The index of the parameter that holds a matrix.
std::size_t parameter_of(const describe::ParameterTable& table, const FlatMatrices& matrices,
                         std::int64_t index) {
  const std::int64_t begin = matrices.begin_of(index);
  const auto parameter = std::ranges::find_if(table.parameters(), [&](const describe::Parameter& one) {
    return one.begin <= begin && begin < one.end();
  });
  return static_cast<std::size_t>(parameter - table.parameters().begin());
}

/// The name of a matrix: that of its parameter, with its number where the parameter holds several.
std::string name_of(const describe::Parameter& parameter, const FlatMatrices& matrices, std::int64_t index) {
  if (parameter.num_elements() == matrices.num_elements()) return parameter.name;
  const std::int64_t part = (matrices.begin_of(index) - parameter.begin) / matrices.num_elements();
  return fmt::format("{}.{}", parameter.name, part);
}

/// The steps of a matrix's two bases, cut into pieces of about equal work.
class BasisSteps {
 public:
  /// Their sizes; 0: there is none.
  explicit BasisSteps(std::array<std::int64_t, 2> sizes) : sizes_(sizes) {}

  /// Those of one side that belong to a piece.
  struct Range {
    std::int64_t first = 0;
    std::int64_t end = 0;
  };
  Range of_piece(std::size_t side, const SoapPiece& piece) const {
    const std::int64_t first = first_of(side, piece.piece, piece.num_pieces);
    if (piece.piece + 1 < piece.num_pieces) return {first, first_of(side, piece.piece + 1, piece.num_pieces)};
    return {first, sizes_[side] == 0 ? 0 : kernels::num_soap_basis_steps(sizes_[side])};
  }

 private:
  /// But for the last one, which is done in the last piece: until then both bases are in use.
  static std::int64_t num_steps(std::int64_t N) { return N == 0 ? 0 : kernels::num_soap_basis_steps(N) - 1; }

  /// Operations of a step: the product, or a panel that is made orthonormal and taken away from the rows
  /// behind it. What is no product of matrices takes longer.
  static std::int64_t cost_of(std::int64_t N, std::int64_t step) {
    constexpr std::int64_t kPanel = kernels::kOrthonormalPanel;
    constexpr std::int64_t kSlower = 4;
    if (step == 0) return 2 * N * N * N;
    const std::int64_t num_panels = kernels::num_orthonormalise_steps(N) / kernels::kOrthonormalPasses;
    const std::int64_t num_behind = std::max<std::int64_t>(0, N - ((step - 1) % num_panels + 1) * kPanel);
    const std::int64_t times = step <= num_panels ? 2 : 1;
    return 4 * kPanel * N * num_behind + kSlower * times * 2 * kPanel * kPanel * N;
  }
  static std::int64_t cost_of(std::int64_t N) {
    std::int64_t cost = 0;
    for (std::int64_t step = 0; step < num_steps(N); ++step) cost += cost_of(N, step);
    return cost;
  }

  /// The first step of a side that begins in a piece or behind it.
  std::int64_t first_of(std::size_t side, std::size_t piece, std::size_t num_pieces) const {
    const double begin = static_cast<double>(cost_of(sizes_[0]) + cost_of(sizes_[1])) *
                         static_cast<double>(piece) / static_cast<double>(num_pieces);
    std::int64_t before = side == 1 ? cost_of(sizes_[0]) : 0;
    std::int64_t step = 0;
    for (; step < num_steps(sizes_[side]) && static_cast<double>(before) < begin; ++step)
      before += cost_of(sizes_[side], step);
    return step;
  }

  std::array<std::int64_t, 2> sizes_;
};

}  // namespace

std::vector<SoapTensor> soap_tensors(const describe::ParameterTable& table,
                                     std::span<const FlatMatrices> groups, const SoapOptions& options) {
  std::vector<SoapTensor> tensors;
  std::int64_t group_begin = 0;
  for (const FlatMatrices& group : groups) {
    const workspace::SoapPlace place = workspace::soap_place(group, options.limit, group_begin);
    group_begin = place.end();
    const auto add = [&](const char* side, std::int64_t size, std::int64_t begin, std::int64_t index) {
      if (size == 0) return;
      const std::size_t parameter = parameter_of(table, group, index);
      const std::string name = name_of(table[parameter], group, index);
      tensors.push_back(
          {fmt::format("soap.factor_{}.{}", side, name), parameter, size, begin + index * size * size});
      tensors.push_back({fmt::format("soap.basis_{}.{}", side, name), parameter, size,
                         begin + (group.count + index) * size * size});
    };
    for (std::int64_t i = 0; i < group.count; ++i) {
      add("rows", place.rows, place.row_begin, i);
      add("columns", place.columns, place.column_begin, i);
    }
  }
  return tensors;
}

Soap::Soap(std::vector<FlatMatrices> groups, const SoapOptions& options, double epsilon, double decay,
           SoapBuffers buffers)
    : groups_(std::move(groups)), options_(options), epsilon_(epsilon), decay_(decay), buffers_(buffers) {
  std::int64_t begin = 0;
  for (const FlatMatrices& group : groups_) {
    places_.push_back(workspace::soap_place(group, options_.limit, begin));
    begin = places_.back().end();
  }
}

void Soap::step(const tensor::Stream& stream, std::uint64_t step_index, kernels::SoapStep flat) const {
  flat.groups = groups_;
  flat.limit = options_.limit;
  flat.state = buffers_.state;
  flat.room = buffers_.room;
  flat.beta = options_.beta;
  flat.epsilon = epsilon_;
  flat.decay = decay_;
  flat.is_first = step_index == 0;
  const bool is_refreshed = step_index % static_cast<std::uint64_t>(options_.refresh_steps()) == 0;
  flat.num_iterations = flat.is_first ? kFirstIterations : is_refreshed ? 1 : 0;
  kernels::soap_step(stream, flat);
}

std::span<const FlatMatrices> Soap::matrices_of(const Groups& groups) const {
  return std::span(groups_).subspan(groups.first, groups.count);
}

TensorView Soap::state_of(const Groups& groups) const {
  if (groups.count == 0) return buffers_.state.first_rows(0);
  const std::int64_t begin = places_[groups.first].row_begin;
  return buffers_.state.rows(begin, places_[groups.first + groups.count - 1].end() - begin);
}

void Soap::update_factors(const tensor::Stream& stream, std::uint64_t step_index, const Groups& groups,
                          kernels::SoapFactors flat) const {
  flat.groups = matrices_of(groups);
  flat.limit = options_.limit;
  flat.state = state_of(groups);
  flat.room = buffers_.room;
  flat.beta = options_.beta;
  flat.is_first = step_index == 0;
  flat.num_iterations = flat.is_first ? kFirstIterations : 0;
  kernels::soap_factors(stream, flat);
}

void Soap::refresh(const tensor::Stream& stream, const SoapSideViews& side,
                   const tensor::ConstTensorView& factor_NN, const tensor::ConstTensorView& scalars_C) const {
  kernels::soap_basis(
      stream,
      {.factor_NN = factor_NN, .basis_NN = side.basis_NN, .room = buffers_.room, .scalars_C = scalars_C});
}

void Soap::refresh_in_pieces(const tensor::Stream& stream, const std::array<SoapSideViews, 2>& sides,
                             const std::array<TensorView, 2>& kept, const SoapPiece& piece,
                             const tensor::ConstTensorView& scalars_C) const {
  const auto size_of = [](const SoapSideViews& side) { return side.basis_NN ? side.basis_NN.size(0) : 0; };
  const BasisSteps steps({size_of(sides[0]), size_of(sides[1])});
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto [first, end] = steps.of_piece(i, piece);
    if (first == end) continue;
    kernels::soap_basis(stream, {.factor_NN = kept[i],
                                 .basis_NN = sides[i].basis_NN,
                                 .room = buffers_.room,
                                 .scalars_C = scalars_C,
                                 .iterate_NN = kept[i],
                                 .first_step = first,
                                 .end_step = end});
  }
}

void Soap::make_directions(const tensor::Stream& stream, const Groups& groups,
                           kernels::SoapDirections flat) const {
  flat.groups = matrices_of(groups);
  flat.limit = options_.limit;
  flat.state = state_of(groups);
  flat.room = buffers_.room;
  flat.beta = options_.beta;
  flat.epsilon = epsilon_;
  kernels::soap_directions(stream, flat);
}

void Soap::update_weights(const tensor::Stream& stream, kernels::SoapWeights flat) const {
  flat.decay = decay_;
  kernels::soap_weights(stream, flat);
}

std::array<SoapSideViews, 2> Soap::sides(std::size_t group) const {
  base::check(groups_[group].count == 1, "a group of one matrix has sides, not one of {}",
              groups_[group].count);
  const auto side = [&](std::int64_t N, std::int64_t begin) -> SoapSideViews {
    if (N == 0) return {};
    const auto square = [&](std::int64_t first) {
      return TensorView(buffers_.state.rows(first, N * N).raw(), tensor::DType::Float32, {N, N});
    };
    return {.factor_NN = square(begin), .basis_NN = square(begin + N * N)};
  };
  const workspace::SoapPlace& place = places_[group];
  return {side(place.rows, place.row_begin), side(place.columns, place.column_begin)};
}

}  // namespace plenum::optim
