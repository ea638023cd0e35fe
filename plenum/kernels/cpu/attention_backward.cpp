#include <algorithm>

#include "plenum/kernels/cpu/attention.h"
#include "plenum/kernels/cpu/attention_head.h"
#include "plenum/kernels/cpu/attention_scratch.h"
#include "plenum/kernels/cpu/attention_tasks.h"
#include "plenum/kernels/cpu/for_vectors.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

float dot(const float* a, const float* b, std::int64_t width) {
  Vec sums = {};
  for_vectors(0, width, [&](std::int64_t i, auto n) { sums += load_first(a + i, n) * load_first(b + i, n); });
  return sum(sums);
}

// Turns scores into weights P and the gradients dP into those of the scores before they were scaled,
// dS = P (dP - D) / sqrt K.
void weigh_row(float* scores, float* gradients, float lse, float product, float scale, std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; i += static_cast<std::int64_t>(kLanes)) {
    const Vec weight = exp(load(scores + i) - lse);
    store(scores + i, weight);
    store(gradients + i, weight * (load(gradients + i) - product) * scale);
  }
}

/// The gradients of one head of one sequence, which belong to one task: queries go by in blocks, and each
/// block adds to all keys and values in turn.
class HeadGradient {
 public:
  HeadGradient(const AttentionBackward& args, const AttentionHead& head, std::int64_t sample,
               const AttentionScratch& scratch)
      : args_(args),
        head_(head),
        sample_(sample),
        scratch_(scratch),
        qkv_(args.qkv_T3HK.data<float>()),
        dqkv_(args.dqkv_T3HK.data<float>()) {}

  void compute() const {
    const std::int64_t rows = QueryBlocks(head_.length).rows;
    for (std::int64_t first = 0; first < head_.length; first += rows) {
      add_block(first, std::min(rows, head_.length - first));
    }
  }

 private:
  void add_block(std::int64_t first, std::int64_t rows) const {
    const float* const dcontext =
        head_.context(args_.dcontext_THK.data<float>()) + first * head_.context_stride;
    const Accumulate accumulate = first == 0 ? Accumulate::No : Accumulate::Yes;
    compute_scores(head_, qkv_, first, rows, scratch_);
    gemm({.m = rows,
          .n = head_.length,
          .k = head_.width,
          .a = {.data = dcontext, .stride = head_.context_stride},
          .b = {.data = head_.value(qkv_), .stride = head_.qkv_stride, .is_transposed = true},
          .c = scratch_.gradients(),
          .c_stride = scratch_.stride()},
         scratch_.gemm());
    differentiate_softmax(first, rows, dcontext);
    add_product(scratch_.weights(), rows, dcontext, head_.context_stride, head_.value(dqkv_), accumulate);
    add_product(scratch_.gradients(), rows, head_.query(qkv_) + first * head_.qkv_stride, head_.qkv_stride,
                head_.key(dqkv_), accumulate);
    gemm({.m = rows,
          .n = head_.width,
          .k = head_.length,
          .a = {.data = scratch_.gradients(), .stride = scratch_.stride()},
          .b = {.data = head_.key(qkv_), .stride = head_.qkv_stride},
          .c = head_.query(dqkv_) + first * head_.qkv_stride,
          .c_stride = head_.qkv_stride},
         scratch_.gemm());
  }

  // From scores and dP to dropout(P) and dS. What lies behind a row's end is carried along and never read.
  void differentiate_softmax(std::int64_t first, std::int64_t rows, const float* dcontext) const {
    const float* const context =
        head_.context(args_.context_THK.data<float>()) + first * head_.context_stride;
    const float* const lse =
        args_.lse_HT.data<float>() + head_.head * args_.lse_HT.size(1) + head_.start + first;
    const Dropout& dropout = args_.dropout;
    if (dropout.is_on()) draw_score_bytes(head_, dropout, sample_, first, rows, scratch_);
    for (std::int64_t row = 0; row < rows; ++row) {
      float* const weights = scratch_.weights() + row * scratch_.stride();
      float* const gradients = scratch_.gradients() + row * scratch_.stride();
      const std::uint8_t* const bytes = scratch_.random_bytes() + row * scratch_.columns();
      fill_up_row(head_, weights, scratch_);
      const float product =
          dot(dcontext + row * head_.context_stride, context + row * head_.context_stride, head_.width);
      if (dropout.is_on()) {
        apply_dropout(bytes, dropout.threshold, dropout.scale(), gradients, gradients, scratch_.columns());
      }
      weigh_row(weights, gradients, lse[row], product, head_.scale(), scratch_.columns());
      if (dropout.is_on()) {
        apply_dropout(bytes, dropout.threshold, dropout.scale(), weights, weights, scratch_.columns());
      }
    }
  }

  // target [length, K] (+)= scores^T [length, rows] factor [rows, K].
  void add_product(const float* scores, std::int64_t rows, const float* factor, std::int64_t factor_stride,
                   float* target, Accumulate accumulate) const {
    gemm({.m = head_.length,
          .n = head_.width,
          .k = rows,
          .a = {.data = scores, .stride = scratch_.stride(), .is_transposed = true},
          .b = {.data = factor, .stride = factor_stride},
          .c = target,
          .c_stride = head_.qkv_stride,
          .accumulate = accumulate},
         scratch_.gemm());
  }

  const AttentionBackward& args_;
  const AttentionHead& head_;
  std::int64_t sample_;
  const AttentionScratch& scratch_;
  const float* qkv_;
  float* dqkv_;
};

}  // namespace

void attention_backward(const tensor::Stream& stream, const AttentionBackward& args) {
  const tensor::Shape& shape = args.qkv_T3HK.shape();
  const AttentionTasks tasks(args.sequences, shape[2], [](std::int64_t) -> std::int64_t { return 1; });
  stream.pool().run(tasks.size(), [&](std::size_t index, std::size_t thread) {
    const AttentionTasks::Task task = tasks[index];
    const AttentionHead head(shape, args.sequences, task.sequence, task.head);
    const AttentionScratch scratch(stream.scratch(thread), head.length);
    HeadGradient(args, head, args.samples.empty() ? 0 : args.samples[task.sequence], scratch).compute();
  });
  float* const dqkv = args.dqkv_T3HK.data<float>();
  const std::int64_t width = 3 * shape[2] * shape[3];
  for_each_gap(stream, args.sequences, [&](std::int64_t first, std::int64_t end) {
    std::fill(dqkv + first * width, dqkv + end * width, 0.0F);
  });
}

}  // namespace plenum::kernels::cpu
