#include "plenum/kernels/vocabulary_loss.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/vocabulary_loss.h"
#include "plenum/kernels/cuda/product/vocabulary_loss.h"
#include "plenum/kernels/dispatch.h"
#include "plenum/tensor/copy.h"

namespace plenum::kernels {
namespace {

using tensor::DType;

void check_labels(tensor::ConstTensorView label_M, const RowSlice& words, std::int64_t here) {
  const std::int64_t vocabulary = words.whole_rows(here);
  for (const std::int32_t label : label_M.span<std::int32_t>()) {
    base::check(label >= -1 && label < vocabulary, "a label is outside the vocabulary: label={} V={}", label,
                vocabulary);
  }
}

/// Numbers that a slice of the vocabulary knows of a position.
constexpr std::int64_t kVocabularyPart = 4;

void check_losses(const tensor::TensorView& lse_M, const tensor::TensorView& loss_M,
                  const tensor::TensorView& prediction_M, std::int64_t masked) {
  check_argument("lse_M", lse_M, {masked});
  check_argument("loss_M", loss_M, {masked});
  if (prediction_M) check_argument("prediction_M", prediction_M, DType::Int32, {masked});
}

}  // namespace

void vocabulary_loss_forward(const tensor::Stream& stream, const VocabularyLossForward& args) {
  base::check(args.h_MD.shape().num_dims() == 2 && args.w_VD.shape().num_dims() == 2,
              "h and w must be matrices: h={} w={}", to_string(args.h_MD.shape()),
              to_string(args.w_VD.shape()));
  const DType dtype = stream.precision().of(tensor::Role::Activation);
  const DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  const std::int64_t masked = args.h_MD.size(0);
  const std::int64_t vocabulary = args.w_VD.size(0);
  check_argument("h_MD", args.h_MD, dtype, {masked, args.w_VD.size(1)});
  check_argument("w_VD", args.w_VD, weight_dtype, {vocabulary, args.w_VD.size(1)});
  check_argument("b_V", args.b_V, weight_dtype, {vocabulary});
  check_argument("label_M", args.label_M, DType::Int32, {masked});
  check_argument("logits_MW", args.logits_MW, dtype,
                 {masked, vocabulary_stride(stream.device(), vocabulary)});
  check_argument("tiles_MN2", args.tiles_MN2, {masked, vocabulary_tiles(stream.device(), vocabulary), 2});
  if (args.part_M4) {
    check_argument("part_M4", args.part_M4, {masked, kVocabularyPart});
  } else {
    check_losses(args.lse_M, args.loss_M, args.prediction_M, masked);
  }
  if (stream.device() == tensor::Device::Cpu) check_labels(args.label_M, args.words, vocabulary);
  check_scratch(stream, vocabulary_loss_scratch_bytes(stream.device()));
  if (masked == 0) return;
  dispatch<&cpu::vocabulary_loss_forward, &cuda::vocabulary_loss_forward>(stream, args);
}

void combine_vocabulary_parts(const tensor::Stream& stream, const VocabularyParts& args) {
  base::check(args.part_PM4.shape().num_dims() == 3, "part_PM4 must have three dimensions: {}",
              to_string(args.part_PM4.shape()));
  const std::int64_t masked = args.part_PM4.size(1);
  check_argument("part_PM4", args.part_PM4, {args.part_PM4.size(0), masked, kVocabularyPart});
  check_argument("label_M", args.label_M, DType::Int32, {masked});
  check_losses(args.lse_M, args.loss_M, args.prediction_M, masked);
  if (masked == 0) return;
  dispatch<&cpu::combine_vocabulary_parts, &cuda::combine_vocabulary_parts>(stream, args);
}

void vocabulary_loss_backward(const tensor::Stream& stream, const VocabularyLossBackward& args) {
  base::check(args.h_MD.shape().num_dims() == 2 && args.w_VD.shape().num_dims() == 2,
              "h and w must be matrices: h={} w={}", to_string(args.h_MD.shape()),
              to_string(args.w_VD.shape()));
  const DType dtype = stream.precision().of(tensor::Role::Activation);
  const DType weight_dtype = stream.precision().of(tensor::Role::Weight);
  const std::int64_t masked = args.h_MD.size(0);
  const std::int64_t vocabulary = args.w_VD.size(0);
  const std::int64_t width = args.w_VD.size(1);
  check_argument("h_MD", args.h_MD, dtype, {masked, width});
  check_argument("w_VD", args.w_VD, weight_dtype, {vocabulary, width});
  check_argument("label_M", args.label_M, DType::Int32, {masked});
  check_argument("lse_M", args.lse_M, {masked});
  check_argument("scale_1", args.scale_1, DType::Float64, {1});
  check_argument("logits_MW", args.logits_MW, dtype,
                 {masked, vocabulary_stride(stream.device(), vocabulary)});
  check_argument("dh_MD", args.dh_MD, dtype, {masked, width});
  check_argument("dw_VD", args.dw_VD, {vocabulary, width});
  check_argument("db_V", args.db_V, {vocabulary});
  if (stream.device() == tensor::Device::Cpu) check_labels(args.label_M, args.words, vocabulary);
  check_scratch(stream, vocabulary_loss_scratch_bytes(stream.device()));
  if (masked == 0) {
    if (args.accumulate == Accumulate::No) tensor::set_zero(stream, args.dw_VD);
    return;
  }
  dispatch<&cpu::vocabulary_loss_backward, &cuda::vocabulary_loss_backward>(stream, args);
}

}  // namespace plenum::kernels
