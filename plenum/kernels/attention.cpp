#include "plenum/kernels/attention.h"

#include <algorithm>

#include "plenum/kernels/check_argument.h"
#include "plenum/kernels/check_scratch.h"
#include "plenum/kernels/cpu/attention.h"
#include "plenum/kernels/cuda/attention/attention.h"
#include "plenum/kernels/dispatch.h"

namespace plenum::kernels {
namespace {

void check_sequences(const batch::SequenceOffsets& sequences, std::span<const std::int64_t> samples,
                     const Dropout& dropout, std::int64_t num_rows) {
  batch::check_sequence_offsets(sequences);
  base::check(sequences.num_rows == num_rows, "sequences are of other rows: {} of {}", sequences.num_rows,
              num_rows);
  base::check(dropout.threshold < 256, "dropout's threshold is of 256: {}", dropout.threshold);
  base::check(!dropout.is_on() || samples.size() == sequences.num_sequences(),
              "dropout needs the sample of every sequence: {} samples of {} sequences", samples.size(),
              sequences.num_sequences());
}

// Returns the shape [T, H, K].
tensor::Shape check_qkv(tensor::DType dtype, tensor::ConstTensorView qkv_T3HK) {
  const tensor::Shape& shape = qkv_T3HK.shape();
  base::check(shape.num_dims() == 4 && shape[1] == 3 && shape[2] > 0 && shape[3] > 0,
              "qkv_T3HK must have the shape [T, 3, H, K]: {}", to_string(shape));
  check_argument("qkv_T3HK", qkv_T3HK, dtype, shape);
  return {shape[0], shape[2], shape[3]};
}

/// `shape` is [T, H, K].
void check_memory_for(const batch::SequenceOffsets& sequences, const tensor::Shape& shape,
                      const tensor::ConstTensorView& keep_bits, const tensor::Stream& stream) {
  if (sequences.num_sequences() == 0) return;
  const AttentionSize size{.rows = shape[0],
                           .max_length = std::ranges::max(sequences.lengths),
                           .heads = shape[1],
                           .head_width = shape[2]};
  check_scratch(stream, attention_scratch_bytes(stream.device(), size));
  if (!keep_bits) return;
  const auto num_bytes = static_cast<std::int64_t>(attention_keep_bytes(stream.device(), size));
  base::check(keep_bits.dtype() == tensor::DType::Byte && keep_bits.num_elements() >= num_bytes,
              "keep_bits is too small: {} elements, {} bytes needed", keep_bits.num_elements(), num_bytes);
  if (stream.device() == tensor::Device::Cuda) check_alignment("keep_bits", keep_bits);
}

void check_work(const AttentionWork& work, const Dropout& dropout) {
  const auto count_of = [](const tensor::ConstTensorView& list) {
    return list.shape().num_dims() == 2 ? list.size(0) : 0;
  };
  check_argument("work.counts_2", work.counts_2, tensor::DType::Int32, {2});
  check_argument("work.tiles_N4", work.tiles_N4, tensor::DType::Int32, {count_of(work.tiles_N4), 4});
  check_argument("work.gaps_G2", work.gaps_G2, tensor::DType::Int32, {count_of(work.gaps_G2), 2});
  if (dropout.is_on()) {
    check_argument("work.sample_S", work.sample_S, tensor::DType::Int64, work.sample_S.shape());
  }
}

}  // namespace

void attention_forward(const tensor::Stream& stream, const AttentionForward& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::Shape shape = check_qkv(dtype, args.qkv_T3HK);
  check_sequences(args.sequences, args.samples, args.dropout, shape[0]);
  check_argument("context_THK", args.context_THK, dtype, shape);
  check_argument("lse_HT", args.lse_HT, {shape[1], shape[0]});
  check_memory_for(args.sequences, shape, args.keep_bits, stream);
  if (stream.device() == tensor::Device::Cuda) check_work(args.work, args.dropout);
  dispatch<&cpu::attention_forward, &cuda::attention_forward>(stream, args);
}

void attention_backward(const tensor::Stream& stream, const AttentionBackward& args) {
  const tensor::DType dtype = stream.precision().of(tensor::Role::Activation);
  const tensor::Shape shape = check_qkv(dtype, args.qkv_T3HK);
  check_sequences(args.sequences, args.samples, args.dropout, shape[0]);
  check_argument("context_THK", args.context_THK, dtype, shape);
  check_argument("lse_HT", args.lse_HT, {shape[1], shape[0]});
  check_argument("dcontext_THK", args.dcontext_THK, dtype, shape);
  check_argument("dqkv_T3HK", args.dqkv_T3HK, dtype, args.qkv_T3HK.shape());
  check_memory_for(args.sequences, shape, args.keep_bits, stream);
  if (stream.device() == tensor::Device::Cuda) check_work(args.work, args.dropout);
  dispatch<&cpu::attention_backward, &cuda::attention_backward>(stream, args);
}

}  // namespace plenum::kernels
