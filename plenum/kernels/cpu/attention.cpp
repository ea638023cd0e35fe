#include "plenum/kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "plenum/kernels/cpu/attention_head.h"
#include "plenum/kernels/cpu/attention_scratch.h"
#include "plenum/kernels/cpu/attention_tasks.h"
#include "plenum/kernels/cpu/vector.h"

namespace plenum::kernels::cpu {
namespace {

struct SoftmaxRow {
  float greatest = 0;
  float sum = 0;
};

// Replaces scores by exp(score - greatest score), in which nothing overflows and the sum is at least 1.
SoftmaxRow exponentiate(float* scores, std::int64_t columns) {
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  Vec greatest = load(scores);
  for (std::int64_t i = kStep; i < columns; i += kStep) greatest = max(load(scores + i), greatest);
  const float top = max_lane(greatest);
  Vec sums = {};
  for (std::int64_t i = 0; i < columns; i += kStep) {
    const Vec weight = exp(load(scores + i) - top);
    store(scores + i, weight);
    sums += weight;
  }
  return {.greatest = top, .sum = sum(sums)};
}

void scale_row(float* row, float factor, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) row[i] *= factor;
}

void forward_block(const AttentionForward& args, const AttentionHead& head, std::int64_t sample,
                   std::int64_t first, std::int64_t rows, const AttentionScratch& scratch) {
  const float* const qkv = args.qkv_T3HK.data<float>();
  float* const context = head.context(args.context_THK.data<float>()) + first * head.context_stride;
  float* const lse = args.lse_HT.data<float>() + head.head * args.lse_HT.size(1) + head.start + first;

  compute_scores(head, qkv, first, rows, scratch);
  if (args.dropout.is_on()) draw_score_bytes(head, args.dropout, sample, first, rows, scratch);
  float* const factors = scratch.row_values();
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const weights = scratch.weights() + row * scratch.stride();
    fill_up_row(head, weights, scratch);
    const SoftmaxRow softmax = exponentiate(weights, scratch.columns());
    lse[row] = softmax.greatest + std::log(softmax.sum);
    factors[row] = args.dropout.scale() / softmax.sum;
    if (args.dropout.is_on()) {
      apply_dropout(scratch.random_bytes() + row * scratch.columns(), args.dropout.threshold, 1.0F, weights,
                    weights, head.length);
    }
  }
  gemm({.m = rows,
        .n = head.width,
        .k = head.length,
        .a = {.data = scratch.weights(), .stride = scratch.stride()},
        .b = {.data = head.value(qkv), .stride = head.qkv_stride},
        .c = context,
        .c_stride = head.context_stride},
       scratch.gemm());
  for (std::int64_t row = 0; row < rows; ++row) {
    scale_row(context + row * head.context_stride, factors[row], head.width);
  }
}

}  // namespace

void attention_forward(const tensor::Stream& stream, const AttentionForward& args) {
  const tensor::Shape& shape = args.qkv_T3HK.shape();
  const std::int64_t num_heads = shape[2];
  const AttentionTasks tasks(args.sequences, num_heads,
                             [](std::int64_t length) { return QueryBlocks(length).count; });
  stream.pool().run(tasks.size(), [&](std::size_t index, std::size_t thread) {
    const AttentionTasks::Task task = tasks[index];
    const AttentionHead head(shape, args.sequences, task.sequence, task.head);
    const QueryBlocks blocks(head.length);
    const std::int64_t first = task.part * blocks.rows;
    forward_block(args, head, args.samples.empty() ? 0 : args.samples[task.sequence], first,
                  std::min(blocks.rows, head.length - first),
                  AttentionScratch(stream.scratch(thread), head.length));
  });
  float* const context = args.context_THK.data<float>();
  float* const lse = args.lse_HT.data<float>();
  const std::int64_t width = num_heads * shape[3];
  for_each_gap(stream, args.sequences, [&](std::int64_t first, std::int64_t end) {
    std::fill(context + first * width, context + end * width, 0.0F);
    for (std::int64_t h = 0; h < num_heads; ++h) {
      std::fill(lse + h * shape[0] + first, lse + h * shape[0] + end, 0.0F);
    }
  });
}

}  // namespace plenum::kernels::cpu
