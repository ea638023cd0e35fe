#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/optim/soap.h"
#include "plenum/tensor/tensor_view.h"
#include "plenum/train/checkpoint_tensors.h"
#include "plenum/workspace/optimizer.h"

namespace plenum::train {

/// What a rank keeps of SOAP, borrowed.
struct SoapRank {
  const describe::ParameterTable& table;           ///< of the rank's layers
  std::vector<workspace::FlatMatrices> matrices;   ///< that it has the state of
  tensor::TensorView state;                        ///< optim::SoapBuffers
  std::function<bool(std::size_t)> is_written_by;  ///< whether of all ranks it writes that of a parameter
};

/// Factors and bases of the whole model by the names of the matrices whose gradients they are of. All are
/// listed, so that every process knows the same file; those that no `rank` has are without values.
std::vector<StateTensor> soap_states(const describe::ParameterTable& whole, const optim::SoapOptions& options,
                                     std::span<const SoapRank> ranks);

}  // namespace plenum::train
