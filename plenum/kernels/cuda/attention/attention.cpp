#include "plenum/kernels/cuda/attention/attention.h"

#include <algorithm>

#include "plenum/kernels/attention_work.h"
#include "plenum/kernels/cuda/attention/attention_keep_bits.h"
#include "plenum/kernels/cuda/attention/attention_scratch.h"
#include "plenum/kernels/cuda/attention/attention_sm80.h"
#include "plenum/kernels/cuda/attention/attention_sm90.h"
#include "plenum/kernels/cuda/device/bfloat16_data.h"
#include "plenum/kernels/cuda/device/device_attribute.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_check.h"

namespace plenum::kernels::cuda {
namespace {

// By wgmma where the GPU has it and the head width allows, else by mma.sync.
struct Form {
  cudaError_t (*forward)(const AttentionArguments&, cudaStream_t);
  cudaError_t (*backward)(const AttentionArguments&, cudaStream_t);
  bool backward_reads_by_query;  // bits of dropout; by key in any case
};

Form form_for(std::int64_t head_width) {
  workspace::require_head_width(head_width);
  if (head_width == 64 && is_hopper()) return {attention_forward_sm90, attention_backward_sm90, false};
  return {attention_forward_sm80, attention_backward_sm80, true};
}

// What forward and backward have in common.
struct Call {
  const tensor::Stream& stream;
  const AttentionWork& work;
  const Dropout& dropout;
  AttentionSize size;

  Call(const tensor::Stream& on, const tensor::Shape& qkv_T3HK, const batch::SequenceOffsets& sequences,
       const AttentionWork& of, const Dropout& with)
      : stream(on),
        work(of),
        dropout(with),
        size{.rows = qkv_T3HK[0],
             .max_length = attention_launch_length(std::ranges::max(sequences.lengths)),
             .heads = qkv_T3HK[2],
             .head_width = qkv_T3HK[3]} {}

  const AttentionTile* tiles() const { return static_cast<const AttentionTile*>(work.tiles_N4.raw()); }
  const std::int32_t* counts() const { return work.counts_2.data<std::int32_t>(); }

  std::uint32_t* by_query() const { return bits_at(AttentionScratch(size).by_query); }
  std::uint32_t* by_key() const { return bits_at(AttentionScratch(size).by_key); }

  // Draws the bits of dropout that have a place.
  AttentionKeepBits draw(std::uint32_t* by_query, std::uint32_t* by_key) const {
    const AttentionKeepBits bits{
        .by_query = by_query,
        .by_key = by_key,
        .num_rows = static_cast<std::int32_t>(size.rows),
        .num_column_blocks = static_cast<std::int32_t>(size.max_length / AttentionKeepBits::kBlockColumns)};
    if (by_query == nullptr && by_key == nullptr) return bits;
    draw_attention_keep_bits(stream.cuda().handle(), stream.cuda().num_multiprocessors(),
                             {.tiles = tiles(),
                              .num_tiles = counts(),
                              .tile_rows = kAttentionTileRows,
                              .samples_S = work.sample_S.data<std::int64_t>(),
                              .num_rows = bits.num_rows,
                              .num_heads = static_cast<std::int32_t>(size.heads),
                              .num_column_blocks = bits.num_column_blocks,
                              .threshold = dropout.threshold,
                              .layer_and_site = dropout.layer_and_site(),
                              .first_head = dropout.first_head,
                              .key = dropout.key,
                              .by_query = by_query,
                              .by_key = by_key});
    tensor::check_cuda(cudaGetLastError(), "start to draw attention's dropout");
    return bits;
  }

  // All that is not a tensor.
  AttentionArguments prepare(const AttentionKeepBits& keep) const {
    const AttentionScratch layout(size);
    std::byte* const scratch = stream.scratch().data();
    auto* const next_item = reinterpret_cast<std::int32_t*>(scratch);
    tensor::check_cuda(cudaMemsetAsync(next_item, 0, sizeof *next_item, stream.cuda().handle()),
                       "clear attention's counter");
    return {.tiles = tiles(),
            .num_tiles = counts(),
            .gaps = static_cast<const AttentionGap*>(work.gaps_G2.raw()),
            .num_gaps = counts() + 1,
            .keep = keep,
            .dropout_scale = dropout.scale(),
            .num_rows = static_cast<std::int32_t>(size.rows),
            .num_heads = static_cast<std::int32_t>(size.heads),
            .head_width = static_cast<std::int32_t>(size.head_width),
            .num_multiprocessors = stream.cuda().num_multiprocessors(),
            .max_length = static_cast<std::int32_t>(size.max_length),
            .next_item = next_item,
            .scratch = scratch + layout.form};
  }

 private:
  std::uint32_t* bits_at(std::size_t offset) const {
    return reinterpret_cast<std::uint32_t*>(stream.scratch().data() + offset);
  }
};

}  // namespace

void attention_forward(const tensor::Stream& stream, const AttentionForward& args) {
  if (args.sequences.num_sequences() == 0) return tensor::set_zero(stream, args.context_THK);
  const Call call(stream, args.qkv_T3HK.shape(), args.sequences, args.work, args.dropout);
  const Form form = form_for(call.size.head_width);
  AttentionKeepBits keep;
  if (args.dropout.is_on())
    keep = call.draw(call.by_query(), static_cast<std::uint32_t*>(args.keep_bits.raw()));
  AttentionArguments arguments = call.prepare(keep);
  arguments.qkv_T3HK = bfloat16_data(args.qkv_T3HK);
  arguments.context_THK = bfloat16_data(args.context_THK);
  arguments.lse_HT = args.lse_HT.data<float>();
  tensor::check_cuda(form.forward(arguments, stream.cuda().handle()), "start attention");
}

void attention_backward(const tensor::Stream& stream, const AttentionBackward& args) {
  if (args.sequences.num_sequences() == 0) return tensor::set_zero(stream, args.dqkv_T3HK);
  const Call call(stream, args.qkv_T3HK.shape(), args.sequences, args.work, args.dropout);
  const Form form = form_for(call.size.head_width);
  AttentionKeepBits keep;
  if (args.dropout.is_on()) {
    const auto* const kept_by_key = static_cast<const std::uint32_t*>(args.keep_bits.raw());
    keep = call.draw(form.backward_reads_by_query ? call.by_query() : nullptr,
                     kept_by_key != nullptr ? nullptr : call.by_key());
    if (kept_by_key != nullptr) keep.by_key = kept_by_key;
  }
  AttentionArguments arguments = call.prepare(keep);
  arguments.qkv_T3HK = bfloat16_data(args.qkv_T3HK);
  // Written by forward, which has the same arguments; backward only reads them.
  arguments.context_THK = const_cast<__nv_bfloat16*>(bfloat16_data(args.context_THK));
  arguments.lse_HT = const_cast<float*>(args.lse_HT.data<float>());
  arguments.dcontext_THK = bfloat16_data(args.dcontext_THK);
  arguments.dqkv_T3HK = bfloat16_data(args.dqkv_T3HK);
  tensor::check_cuda(form.backward(arguments, stream.cuda().handle()), "start attention's gradient");
}

}  // namespace plenum::kernels::cuda
