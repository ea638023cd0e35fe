#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/optimizer_step.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::optim {

enum class OptimizerKind : std::uint8_t {
  AdamW,     ///< Loshchilov and Hutter 2019, as in PyTorch and Hugging Face
  BertAdam,  ///< as in the original BERT: no bias correction
  Lamb,      ///< You et al. 2020, as in NVLAMB
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::AdamW;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::optional<double> epsilon = std::nullopt;  ///< default_epsilon(kind) if absent
  double decay = 0.01;
  double clip_norm = 1;  ///< greatest norm of the whole gradient; 0: no clipping

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// What the authors of each use: 1e-8 for AdamW (PyTorch, Hugging Face), 1e-6 for the original BERT and
/// NVLAMB.
double default_epsilon(OptimizerKind kind);

/// The flat buffers that an optimizer works on, borrowed; all of ParameterTable::num_elements() elements.
struct OptimizerBuffers {
  tensor::TensorView weights_N;
  tensor::TensorView compute_weights_N;  ///< as products read them; weights_N where that is the same type
  tensor::TensorView gradients_N;
  tensor::TensorView first_moments_N;
  tensor::TensorView second_moments_N;
  tensor::TensorView chunks_C4 = {};  ///< kernels::OptimizerWork: written by begin(); needed on the GPU
};

/// Updates all parameters at once. See docs/math/optimizers.md.
class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, const describe::ParameterTable& table, OptimizerBuffers buffers);

  /// To be called once, before the first step.
  void begin(const tensor::Stream& stream);
  /// Adds the squares of these elements of the gradient to those of the step, of which the whole gradient's
  /// norm is made.
  void add_squares(const tensor::Stream& stream, const describe::ParameterTable::ElementRange& elements,
                   const tensor::TensorView& scalars_C) const;
  /// Clips the gradient and makes one update, unless loss or gradient are not finite. Among the step's
  /// scalars, reads losses, squares of the gradient, learning rate and the number of updates before this
  /// one, and writes what was decided. Gradients are only read.
  void step(const tensor::Stream& stream, const tensor::TensorView& scalars_C);

 private:
  OptimizerOptions options_;
  std::vector<kernels::FlatRange> ranges_;
  OptimizerBuffers buffers_;
};

}  // namespace plenum::optim
