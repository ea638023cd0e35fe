#include "plenum/optim/soap.h"

#include <algorithm>

#include <fmt/format.h>

#include "plenum/memory/hidden_matrices.h"

namespace plenum::optim {
namespace {

using kernels::FlatMatrices;

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

}  // namespace

std::vector<SoapTensor> soap_tensors(const describe::ParameterTable& table, const SoapOptions& options) {
  std::vector<SoapTensor> tensors;
  std::int64_t group_begin = 0;
  for (const FlatMatrices& group : memory::hidden_matrices(table)) {
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

Soap::Soap(const describe::ParameterTable& table, const SoapOptions& options, double epsilon, double decay,
           SoapBuffers buffers)
    : groups_(memory::hidden_matrices(table)),
      options_(options),
      epsilon_(epsilon),
      decay_(decay),
      buffers_(buffers) {}

void Soap::step(const tensor::Stream& stream, std::uint64_t step_index, kernels::SoapStep flat) const {
  flat.groups = groups_;
  flat.limit = options_.limit;
  flat.state = buffers_.state;
  flat.room = buffers_.room;
  flat.beta = options_.beta;
  flat.epsilon = epsilon_;
  flat.decay = decay_;
  flat.is_first = step_index == 0;
  const bool is_refreshed = step_index % static_cast<std::uint64_t>(options_.every) == 0;
  flat.num_iterations = flat.is_first ? kFirstIterations : is_refreshed ? 1 : 0;
  kernels::soap_step(stream, flat);
}

}  // namespace plenum::optim
