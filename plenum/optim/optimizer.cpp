#include "plenum/optim/optimizer.h"

#include "plenum/tensor/copy.h"

namespace plenum::optim {
namespace {

/// The places of parameters in the flat buffers.
std::vector<kernels::FlatRange> flat_ranges(const describe::ParameterTable& table) {
  std::vector<kernels::FlatRange> ranges;
  for (const describe::Parameter& parameter : table.parameters()) {
    ranges.push_back({parameter.begin, parameter.end(), parameter.is_decayed});
  }
  return ranges;
}

}  // namespace

double default_epsilon(OptimizerKind kind) {
  return kind == OptimizerKind::AdamW ? 1e-8 : 1e-6;
}

Optimizer::Optimizer(const OptimizerOptions& options, const describe::ParameterTable& table,
                     OptimizerBuffers buffers)
    : options_(options), ranges_(flat_ranges(table)), buffers_(buffers) {}

void Optimizer::begin(const tensor::Stream& stream) {
  if (!buffers_.chunks_C4) return;
  const std::vector<std::int64_t> chunks = kernels::optimizer_chunks(ranges_);
  tensor::copy(stream, tensor::ConstTensorView(chunks.data(), buffers_.chunks_C4.shape()),
               buffers_.chunks_C4);
  stream.wait();
}

void Optimizer::add_squares(const tensor::Stream& stream,
                            const describe::ParameterTable::ElementRange& elements,
                            const tensor::TensorView& scalars_C) const {
  kernels::add_gradient_squares(
      stream, {.gradient_N = buffers_.gradients_N.rows(elements.begin, elements.end - elements.begin),
               .scalars_C = scalars_C});
}

void Optimizer::step(const tensor::Stream& stream, const tensor::TensorView& scalars_C) {
  kernels::decide_step(stream, {.clip_norm = options_.clip_norm,
                                .beta1 = options_.beta1,
                                .beta2 = options_.beta2,
                                .is_bias_corrected = options_.kind != OptimizerKind::BertAdam,
                                .scalars_C = scalars_C});
  const bool is_exact = buffers_.compute_weights_N.dtype() == tensor::DType::Float32;
  const kernels::AdamStep step{
      .ranges = ranges_,
      .work = {.chunks_C4 = buffers_.chunks_C4},
      .gradient_N = buffers_.gradients_N,
      .weight_N = buffers_.weights_N,
      .first_moment_N = buffers_.first_moments_N,
      .second_moment_N = buffers_.second_moments_N,
      .compute_weight_N = is_exact ? tensor::TensorView() : buffers_.compute_weights_N,
      .scalars_C = scalars_C,
      .beta1 = options_.beta1,
      .beta2 = options_.beta2,
      .epsilon = options_.epsilon.value_or(default_epsilon(options_.kind)),
      .decay = options_.decay};
  if (options_.kind == OptimizerKind::Lamb) {
    kernels::lamb_step(stream, step);
  } else {
    kernels::adam_step(stream, step);
  }
}

}  // namespace plenum::optim
