#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/soap_step.h"
#include "plenum/tensor/shape.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::optim {

struct SoapOptions {
  static constexpr std::int64_t kEvery = 10;

  double beta = 0.95;                 ///< of all averages: both moments and the factors
  std::optional<std::int64_t> every;  ///< steps from one refresh of the bases to the next; kEvery if absent
  std::int64_t limit = 1024;          ///< sizes above it are not rotated

  std::int64_t refresh_steps() const { return every.value_or(kEvery); }

  friend bool operator==(const SoapOptions&, const SoapOptions&) = default;
};

/// What SOAP needs beside the flat buffers, borrowed.
struct SoapBuffers {
  tensor::TensorView state;  ///< workspace::soap_state_elements(): to be kept, as moments are
  tensor::TensorView room;   ///< workspace::soap_room_elements()
};

/// A factor or a basis, as files name it.
struct SoapTensor {
  std::string name;
  std::size_t parameter = 0;  ///< whose gradient it is of, in the table
  std::int64_t size = 0;      ///< [size, size]
  std::int64_t begin = 0;     ///< in SoapBuffers::state
};
/// All of them: "soap.factor_rows.<name>", "soap.basis_rows.<name>", and those of columns, of every matrix of
/// these groups; of a tensor that holds several matrices with ".0", ".1" behind it.
std::vector<SoapTensor> soap_tensors(const describe::ParameterTable& table,
                                     std::span<const kernels::FlatMatrices> groups,
                                     const SoapOptions& options);

/// A side of a matrix; without views where it is not rotated.
struct SoapSideViews {
  tensor::TensorView factor_NN, basis_NN;
};

/// A part of refreshing the bases of a matrix.
struct SoapPiece {
  std::size_t piece = 0;
  std::size_t num_pieces = 1;
};

/// Updates the weights of groups of matrices by SOAP. Other parameters are left alone.
class Soap {
 public:
  Soap(std::vector<kernels::FlatMatrices> groups, const SoapOptions& options, double epsilon, double decay,
       SoapBuffers buffers);

  /// `flat` says where weights, gradients and moments lie; the rest of it is filled in here. Which step it
  /// is, from 0, says whether bases are refreshed: in the first of a run they begin.
  void step(const tensor::Stream& stream, std::uint64_t step_index, kernels::SoapStep flat) const;

  // The same of groups [first, first + count) in parts (kernels::SoapFactors and what follows it), where
  // schedules say when bases are refreshed. Those of a run's first step are made with the first factors.
  struct Groups {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  void update_factors(const tensor::Stream& stream, std::uint64_t step_index, const Groups& groups,
                      kernels::SoapFactors flat) const;
  /// Makes an iteration of a side of a group of one matrix by `factor_NN`. With scalars, unless the step is
  /// skipped.
  void refresh(const tensor::Stream& stream, const SoapSideViews& side,
               const tensor::ConstTensorView& factor_NN, const tensor::ConstTensorView& scalars_C) const;
  /// Makes a part of an iteration of both sides of such a group, rows before columns: all of them, however
  /// many, make what refresh() makes. `kept` are their factors, which the parts overwrite.
  void refresh_in_pieces(const tensor::Stream& stream, const std::array<SoapSideViews, 2>& sides,
                         const std::array<tensor::TensorView, 2>& kept, const SoapPiece& piece,
                         const tensor::ConstTensorView& scalars_C) const;
  void make_directions(const tensor::Stream& stream, const Groups& groups,
                       kernels::SoapDirections flat) const;
  void update_weights(const tensor::Stream& stream, kernels::SoapWeights flat) const;
  /// Rows and columns of a group of one matrix.
  std::array<SoapSideViews, 2> sides(std::size_t group) const;

 private:
  std::span<const kernels::FlatMatrices> matrices_of(const Groups& groups) const;
  tensor::TensorView state_of(const Groups& groups) const;

  std::vector<kernels::FlatMatrices> groups_;
  std::vector<workspace::SoapPlace> places_;  ///< of groups, in the state
  SoapOptions options_;
  double epsilon_;
  double decay_;
  SoapBuffers buffers_;
};

}  // namespace plenum::optim
