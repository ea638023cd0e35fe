#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "plenum/kernels/cuda/product/lt_matmul.h"
#include "plenum/kernels/matmul_choices.h"

namespace plenum::kernels::cuda {

/// Runs products by cuBLASLt, each kind by the algorithm that was the fastest when the kind was first asked
/// for, of those that give the same bytes as the library's own choice: so that measuring changes no result.
/// Belongs to one stream: tensor::CudaStream::state.
class MatmulTuner {
 public:
  MatmulTuner();
  ~MatmulTuner();
  MatmulTuner(const MatmulTuner&) = delete;
  MatmulTuner& operator=(const MatmulTuner&) = delete;

  /// Returns false, with nothing done, where the library has no algorithm for this.
  bool run(const tensor::Stream& stream, const Matmul& args);

  MatmulChoices choices() const;
  bool use(const MatmulChoices& choices);

 private:
  /// No algorithm: one for which the library has none.
  using Choice = std::optional<cublasLtMatmulAlgo_t>;

  Choice choose(const tensor::Stream& stream, const Matmul& args, const LtMatmul& product);

  cublasLtHandle_t library_ = nullptr;
  std::string measured_with_;
  std::map<std::string, Choice> choices_;
};

}  // namespace plenum::kernels::cuda
