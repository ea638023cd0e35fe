#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/tensor/precision.h"
#include "plenum/tensor/shape.h"

namespace plenum::describe {

/// What a layer keeps from forward to backward or, as errors, behind its backward, beside its input, which is
/// the output of the one before.
enum class Kept : std::uint8_t {
  // Of a norm before attention or behind it; its input where that is not the layer's.
  AttentionNormInput,
  AttentionNormMean,
  AttentionNormInverseDeviation,
  AttentionNormOutput,
  Qkv,
  Context,      ///< what attention gives
  LogSumExp,    ///< of softmax
  DropoutBits,  ///< what attention's dropout keeps
  ReadContext,  ///< the rows of the context that heads read
  // Of a norm before the MLP or behind it.
  MlpNormInput,
  MlpNormMean,
  MlpNormInverseDeviation,
  MlpNormOutput,
  MlpInner,   ///< what the backward of the MLP's activation wants to know of its input
  MlpOutput,  ///< behind the activation
  // What backward leaves behind: the gradient at the output of each linear map.
  QkvError,
  AttentionOutputError,
  MlpInnerError,
  MlpOutputError,
};

/// How many rows a layer works on.
struct LayerRows {
  std::int64_t attended = 0;
  std::int64_t behind = 0;  ///< behind attention: all, but in the last layer those that heads read
  std::int64_t read = 0;    ///< by heads, of a layer that is or may be the last
};

/// What a layer need not keep, because backward computes it again or because it costs less to do so.
struct Keeping {
  bool keeps_mlp_inner = true;
  bool keeps_mlp_output = false;
  std::size_t dropout_bytes = 0;  ///< of DropoutBits; none: drawn again
};

struct KeptTensor {
  Kept what = Kept::Qkv;
  tensor::DType dtype = tensor::DType::Float32;
  tensor::Shape shape;
};

/// What `layer` keeps of so many rows, in the order of forward. A layer with a norm behind its sublayers
/// keeps the norm's input and, between attention and MLP, its output; one with a norm before them keeps both
/// for the MLP, and for attention, whose norm reads the layer's own input, the output.
std::vector<KeptTensor> kept_tensors(const Layer& layer, const LayerRows& rows, const Keeping& keeping,
                                     const tensor::Precision& precision);

/// The gradients at the outputs of the layer's linear maps (errors), of so many rows, in the order of the
/// maps: what a backward leaves behind where gradients of weights, or curvature, are computed later.
std::vector<KeptTensor> error_tensors(const Layer& layer, const LayerRows& rows,
                                      const tensor::Precision& precision);

/// Their bytes, each rounded up as an arena does.
std::size_t kept_bytes(const std::vector<KeptTensor>& tensors);

}  // namespace plenum::describe
