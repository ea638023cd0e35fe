// Stands for all kernels of the GPU in a build without CUDA. No stream of the GPU can be made there, so
// nothing of this is ever reached.
#include "plenum/kernels/cuda/attention/attention.h"
#include "plenum/kernels/cuda/product/linear.h"
#include "plenum/kernels/cuda/product/matmul_choices.h"
#include "plenum/kernels/cuda/product/mlp_gelu.h"
#include "plenum/kernels/cuda/product/vocabulary_loss.h"
#include "plenum/kernels/cuda/rows/activation.h"
#include "plenum/kernels/cuda/rows/class_loss.h"
#include "plenum/kernels/cuda/rows/column_sums.h"
#include "plenum/kernels/cuda/rows/convert.h"
#include "plenum/kernels/cuda/rows/embedding.h"
#include "plenum/kernels/cuda/rows/layer_norm.h"
#include "plenum/kernels/cuda/rows/optimizer_step.h"
#include "plenum/kernels/cuda/rows/rows.h"
#include "plenum/kernels/cuda/rows/sum.h"
#include "plenum/kernels/cuda/rows/zero_all.h"

namespace plenum::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw base::InternalError("this build has no CUDA backend");
}

}  // namespace

void linear_forward(const tensor::Stream&, const LinearForward&) {
  refuse();
}
void linear_backward_input(const tensor::Stream&, const LinearBackwardInput&) {
  refuse();
}
void linear_backward_weight(const tensor::Stream&, const LinearBackwardWeight&) {
  refuse();
}
std::size_t linear_scratch_bytes() {
  refuse();
}
void mlp_gelu_forward(const tensor::Stream&, const MlpGeluForward&) {
  refuse();
}
void mlp_gelu_backward(const tensor::Stream&, const MlpGeluBackward&) {
  refuse();
}
std::size_t mlp_gelu_scratch_bytes(std::int64_t, std::int64_t) {
  refuse();
}
MatmulChoices matmul_choices(const tensor::Stream&) {
  refuse();
}
bool use_matmul_choices(const tensor::Stream&, const MatmulChoices&) {
  refuse();
}
void gelu_forward(const tensor::Stream&, const GeluForward&) {
  refuse();
}
void gelu_backward(const tensor::Stream&, const GeluBackward&) {
  refuse();
}
void tanh_forward(const tensor::Stream&, const TanhForward&) {
  refuse();
}
void tanh_backward(const tensor::Stream&, const TanhBackward&) {
  refuse();
}
void layer_norm_forward(const tensor::Stream&, const LayerNormForward&) {
  refuse();
}
void layer_norm_backward(const tensor::Stream&, const LayerNormBackward&) {
  refuse();
}
std::size_t layer_norm_scratch_bytes(std::int64_t) {
  refuse();
}
void embedding_forward(const tensor::Stream&, const EmbeddingForward&) {
  refuse();
}
void embedding_backward(const tensor::Stream&, const EmbeddingBackward&) {
  refuse();
}
std::size_t embedding_scratch_bytes(std::int64_t, std::int64_t) {
  refuse();
}
void attention_forward(const tensor::Stream&, const AttentionForward&) {
  refuse();
}
void attention_backward(const tensor::Stream&, const AttentionBackward&) {
  refuse();
}
std::size_t attention_scratch_bytes(const AttentionSize&) {
  refuse();
}
std::size_t attention_keep_bytes(const AttentionSize&) {
  refuse();
}
void add_column_sums(const tensor::Stream&, const AddColumnSums&) {
  refuse();
}
void gather_rows_forward(const tensor::Stream&, const GatherRowsForward&) {
  refuse();
}
void gather_rows_backward(const tensor::Stream&, const GatherRowsBackward&) {
  refuse();
}
void vocabulary_loss_forward(const tensor::Stream&, const VocabularyLossForward&) {
  refuse();
}
void vocabulary_loss_backward(const tensor::Stream&, const VocabularyLossBackward&) {
  refuse();
}
std::size_t vocabulary_loss_scratch_bytes() {
  refuse();
}
void class_loss_forward(const tensor::Stream&, const ClassLossForward&) {
  refuse();
}
void class_loss_backward(const tensor::Stream&, const ClassLossBackward&) {
  refuse();
}
void add_gradient_squares(const tensor::Stream&, const GradientSquares&) {
  refuse();
}
void decide_step(const tensor::Stream&, const StepDecision&) {
  refuse();
}
void adam_step(const tensor::Stream&, const AdamStep&) {
  refuse();
}
void lamb_step(const tensor::Stream&, const AdamStep&) {
  refuse();
}
std::size_t optimizer_scratch_bytes(std::int64_t, std::int64_t) {
  refuse();
}
void round_to_compute(const tensor::Stream&, const RoundToCompute&) {
  refuse();
}
void add_sum(const tensor::Stream&, const AddSum&) {
  refuse();
}
void zero_all(const tensor::Stream&, std::span<const tensor::TensorView>) {
  refuse();
}

}  // namespace plenum::kernels::cuda
