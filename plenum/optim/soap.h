#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/soap_step.h"
#include "plenum/tensor/shape.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::optim {

struct SoapOptions {
  double beta = 0.95;         ///< of all averages: both moments and the factors
  std::int64_t every = 10;    ///< steps from one refresh of the bases to the next
  std::int64_t limit = 1024;  ///< sizes above it are not rotated

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
/// a layer; of a tensor that holds several matrices with ".0", ".1" behind it.
std::vector<SoapTensor> soap_tensors(const describe::ParameterTable& table, const SoapOptions& options);

/// Updates the weights of the maps of all layers by SOAP. Other parameters are left alone.
class Soap {
 public:
  Soap(const describe::ParameterTable& table, const SoapOptions& options, double epsilon, double decay,
       SoapBuffers buffers);

  /// `flat` says where weights, gradients and moments lie; the rest of it is filled in here. Which step it
  /// is, from 0, says whether bases are refreshed: in the first of a run they begin.
  void step(const tensor::Stream& stream, std::uint64_t step_index, kernels::SoapStep flat) const;

 private:
  std::vector<kernels::FlatMatrices> groups_;
  SoapOptions options_;
  double epsilon_;
  double decay_;
  SoapBuffers buffers_;
};

}  // namespace plenum::optim
