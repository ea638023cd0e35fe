#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plenum/kernels/attention.h"
#include "plenum/kernels/attention_work.h"

#include "tests/ops/op_arguments.h"
#include "tests/reference/attention.h"
#include "tests/reference/attention_gradient.h"

namespace plenum::kernels {

inline Dropout some_dropout(std::uint32_t threshold) {
  return {.threshold = threshold,
          .key = base::RandomFunction(5, base::Purpose::Dropout, 1).key(),
          .layer = 2,
          .site = DropoutSite::AttentionWeights};
}

/// Sequences one behind the other, `gap` padding rows before each and behind the last.
inline reference::AttentionShape shape_of(std::size_t heads, std::size_t width,
                                          std::vector<std::int32_t> lengths, std::int32_t gap = 0) {
  reference::AttentionShape shape;
  shape.heads = heads;
  shape.width = width;
  shape.lengths = std::move(lengths);
  std::int32_t row = gap;
  for (const std::int32_t length : shape.lengths) {
    shape.starts.push_back(row);
    shape.samples.push_back(1000 + 7 * row);
    row += length + gap;
  }
  shape.rows = static_cast<std::size_t>(row);
  return shape;
}

struct AttentionCase {
  reference::AttentionShape shape;
  std::uint32_t threshold;

  std::string name() const {
    std::string text = fmt::format("H={} K={} threshold={} lengths", shape.heads, shape.width, threshold);
    for (const std::int32_t length : shape.lengths) text += fmt::format(" {}", length);
    return text;
  }
};

/// Of the head widths that the GPU has kernels for. Lengths at the edges of their blocks, longer than a tile,
/// gaps.
inline std::vector<AttentionCase> wide_cases() {
  std::vector<AttentionCase> cases;
  for (const std::uint32_t threshold : {0U, 26U, 200U}) {
    cases.push_back({shape_of(1, 64, {1}), threshold});
    cases.push_back({shape_of(2, 64, {1, 2, 63, 64, 65, 127, 128, 129}, 3), threshold});
    cases.push_back({shape_of(3, 128, {1, 70, 130, 40}, 1), threshold});
  }
  cases.push_back({shape_of(1, 64, {300, 600}), 26});
  cases.push_back({shape_of(1, 64, {700}), 26});
  cases.push_back({shape_of(1, 128, {513, 2}), 26});
  return cases;
}

/// What attention and its gradient write.
struct AttentionResult {
  ops::TestTensor<float> context;
  ops::TestTensor<float> lse;
  ops::TestTensor<float> dqkv;
  friend bool operator==(const AttentionResult&, const AttentionResult&) = default;
};

/// How bits of dropout go from forward to backward.
struct KeptBits {
  std::int64_t offset = 0;    ///< of their place, from an aligned one
  std::int64_t missing = 0;   ///< bytes of it
  bool are_inverted = false;  ///< when backward gets them
};

/// Attention of random inputs, forward and backward.
class AttentionRun {
 public:
  explicit AttentionRun(const AttentionCase& c, tensor::Device device = tensor::Device::Cpu)
      : shape_(c.shape),
        dropout_(some_dropout(c.threshold)),
        device_(device),
        T_(size(shape_.rows)),
        H_(size(shape_.heads)) {
    const std::int64_t K = size(shape_.width);
    qkv_ = ops::rounded(ops::random_tensor({T_, 3, H_, K}, 1, 2.0), device);
    dcontext_ = ops::rounded(ops::random_tensor({T_, H_, K}, 2), device);
    const AttentionWorkList list = attention_work_list(offsets());
    const std::int64_t num_tiles = size(list.tiles_N4.size()) / 4;
    const std::int64_t num_gaps = size(list.gaps_G2.size()) / 2;
    counts_ = {{2}, {static_cast<std::int32_t>(num_tiles), static_cast<std::int32_t>(num_gaps)}};
    tiles_ = {{num_tiles, 4}, list.tiles_N4};
    gaps_ = {{num_gaps, 2}, list.gaps_G2};
    samples_ = {{size(shape_.samples.size())}, shape_.samples};
    // Nothing may read padding: what it holds in the gradient would be seen.
    const batch::SequenceOffsets sequences = offsets();
    for (std::int64_t row = 0; row < T_; ++row) {
      bool is_padding = true;
      for (std::size_t s = 0; s < sequences.num_sequences(); ++s) {
        if (row >= sequences.starts[s] && row < sequences.starts[s] + sequences.lengths[s])
          is_padding = false;
      }
      if (!is_padding) continue;
      std::fill_n(qkv_.values().begin() + row * 3 * H_ * K, 3 * H_ * K, 1e30F);
      std::fill_n(dcontext_.values().begin() + row * H_ * K, H_ * K, 1e30F);
    }
  }

  /// One of the sequences, without the others.
  AttentionRun alone(std::size_t sequence) const {
    const std::int32_t length = shape_.lengths[sequence];
    const reference::AttentionShape shape{.rows = static_cast<std::size_t>(length),
                                          .heads = shape_.heads,
                                          .width = shape_.width,
                                          .starts = {0},
                                          .lengths = {length},
                                          .samples = {shape_.samples[sequence]}};
    AttentionRun run({shape, dropout_.threshold}, device_);
    run.copy_sequence(*this, sequence, 0);
    return run;
  }

  /// Some of the heads, as a rank that holds no others has them.
  AttentionRun heads(std::int64_t first, std::int64_t count) const {
    reference::AttentionShape shape = shape_;
    shape.heads = static_cast<std::size_t>(count);
    AttentionRun run({shape, dropout_.threshold}, device_);
    run.dropout_.first_head = static_cast<std::uint32_t>(first);
    run.qkv_ = heads_of(qkv_, first, count);
    run.dcontext_ = heads_of(dcontext_, first, count);
    return run;
  }
  /// Of what attention writes or reads, [T, ..., H, K].
  ops::TestTensor<float> heads_of(const ops::TestTensor<float>& tensor, std::int64_t first,
                                  std::int64_t count) const {
    const std::int64_t K = size(shape_.width);
    const std::int64_t rows = tensor.shape().num_elements() / (H_ * K);
    std::vector<float> values;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = tensor.values().begin() + (row * H_ + first) * K;
      values.insert(values.end(), begin, begin + count * K);
    }
    return rows == T_ ? ops::TestTensor<float>({T_, count, K}, values)
                      : ops::TestTensor<float>({T_, 3, count, K}, values);
  }

  /// Gives one sequence the rows of another of the same length.
  void copy_sequence(const AttentionRun& source, std::size_t from, std::size_t to) {
    const auto copy = [&](const ops::TestTensor<float>& source_tensor, ops::TestTensor<float>& tensor) {
      const std::ptrdiff_t width = tensor.shape().num_elements() / T_;
      std::copy_n(source_tensor.values().begin() + source.shape_.starts[from] * width,
                  shape_.lengths[to] * width, tensor.values().begin() + shape_.starts[to] * width);
    };
    copy(source.qkv_, qkv_);
    copy(source.dcontext_, dcontext_);
  }
  /// Gives all queries (part 0), keys (1) or values (2) the same elements.
  void fill_part(std::int64_t part, float value) {
    const std::int64_t width = H_ * size(shape_.width);
    for (std::int64_t row = 0; row < T_; ++row)
      std::fill_n(qkv_.values().begin() + (row * 3 + part) * width, width, value);
  }
  void fill_sequence(std::size_t sequence, float value) {
    for (ops::TestTensor<float>* tensor : {&qkv_, &dcontext_}) {
      const std::ptrdiff_t width = tensor->shape().num_elements() / T_;
      std::fill_n(tensor->values().begin() + shape_.starts[sequence] * width,
                  shape_.lengths[sequence] * width, value);
    }
  }

  /// What lies where results go, beforehand.
  AttentionResult begun() const {
    const std::int64_t K = size(shape_.width);
    return {.context = ops::TestTensor<float>({T_, H_, K}, 7.0F),
            .lse = ops::TestTensor<float>({H_, T_}, 7.0F),
            .dqkv = ops::TestTensor<float>({T_, 3, H_, K}, 7.0F)};
  }

  struct Bound {
    AttentionForward forward;
    AttentionBackward backward;
  };
  /// Borrows the results until they are fetched.
  Bound bind(ops::Arguments& arguments, AttentionResult& result,
             const tensor::TensorView& keep_bits = {}) const {
    const AttentionWork work{.counts_2 = arguments.in(counts_),
                             .tiles_N4 = arguments.in(tiles_),
                             .gaps_G2 = arguments.in(gaps_),
                             .sample_S = arguments.in(samples_)};
    const tensor::ConstTensorView qkv = arguments.in_compute(qkv_);
    const tensor::TensorView out = arguments.out_compute(result.context);
    const tensor::TensorView lse = arguments.out(result.lse);
    return {.forward = {.qkv_T3HK = qkv,
                        .sequences = offsets(),
                        .samples = shape_.samples,
                        .work = work,
                        .dropout = dropout_,
                        .context_THK = out,
                        .lse_HT = lse,
                        .keep_bits = keep_bits},
            .backward = {.qkv_T3HK = qkv,
                         .context_THK = out,
                         .lse_HT = lse,
                         .dcontext_THK = arguments.in_compute(dcontext_),
                         .sequences = offsets(),
                         .samples = shape_.samples,
                         .work = work,
                         .dropout = dropout_,
                         .keep_bits = keep_bits,
                         .dqkv_T3HK = arguments.out_compute(result.dqkv)}};
  }

  AttentionResult run() const { return run(ops::OpContext(device_, scratch_bytes())); }
  /// With bits of dropout that forward keeps for backward.
  AttentionResult run_keeping_bits(const KeptBits& kept = {}) const {
    return run(ops::OpContext(device_, scratch_bytes()), kept);
  }
  reference::Attention expected() const { return reference::attention(shape_, qkv_.doubles(), dropout_); }

  std::vector<double> expected_gradient() const {
    return reference::attention_gradient(shape_, qkv_.doubles(), dropout_, dcontext_.doubles());
  }
  /// The loss whose gradient backward computes, of other queries, keys and values.
  double loss(const std::vector<double>& qkv) const {
    return ops::dot(reference::attention(shape_, qkv, dropout_).context, dcontext_.doubles());
  }

  const ops::TestTensor<float>& qkv() const { return qkv_; }
  const reference::AttentionShape& shape() const { return shape_; }
  std::size_t scratch_bytes() const { return attention_scratch_bytes(device_, attention_size()) + 64; }

  std::string name() const { return AttentionCase{shape_, dropout_.threshold}.name(); }

 private:
  static std::int64_t size(std::size_t value) { return static_cast<std::int64_t>(value); }
  batch::SequenceOffsets offsets() const { return {shape_.starts, shape_.lengths, T_}; }
  AttentionSize attention_size() const {
    std::int32_t longest = 1;
    for (const std::int32_t length : shape_.lengths) longest = std::max(longest, length);
    return {T_, longest, H_, size(shape_.width)};
  }

  static void invert(const tensor::Stream& stream, const tensor::TensorView& bits) {
    ops::TestTensor<std::byte> host(bits.shape());
    tensor::copy(stream, bits, host.view());
    stream.wait();
    for (std::byte& byte : host.values()) byte = ~byte;
    tensor::copy(stream, host.view(), bits);
    stream.wait();
  }

  AttentionResult run(const ops::OpContext& context, const std::optional<KeptBits>& kept = {}) const {
    AttentionResult result = begun();
    ops::Arguments arguments(context);
    tensor::TensorView keep_bits;
    const std::int64_t num_bytes = size(attention_keep_bytes(device_, attention_size()));
    ops::TestTensor<std::byte> place({num_bytes + (kept ? kept->offset : 0)}, std::byte{0xA5});
    if (kept) {
      keep_bits = {arguments.out(place).data<std::byte>() + kept->offset, {num_bytes - kept->missing}};
    }
    const Bound bound = bind(arguments, result, keep_bits);
    attention_forward(context.stream(), bound.forward);
    if (kept && kept->are_inverted) invert(context.stream(), keep_bits);
    attention_backward(context.stream(), bound.backward);
    arguments.fetch();
    return result;
  }

  reference::AttentionShape shape_;
  Dropout dropout_;
  tensor::Device device_;
  std::int64_t T_;
  std::int64_t H_;
  ops::TestTensor<float> qkv_;
  ops::TestTensor<float> dcontext_;
  ops::TestTensor<std::int32_t> counts_, tiles_, gaps_;
  ops::TestTensor<std::int64_t> samples_;
};

/// What belongs to one sequence: context and dqkv, or of [H, T] its columns.
inline std::vector<float> rows_of(const ops::TestTensor<float>& tensor,
                                  const reference::AttentionShape& shape, std::size_t sequence) {
  const std::ptrdiff_t width = tensor.shape().num_elements() / tensor.shape()[0];
  const auto begin = tensor.values().begin() + shape.starts[sequence] * width;
  return {begin, begin + shape.lengths[sequence] * width};
}
inline std::vector<float> columns_of(const ops::TestTensor<float>& lse_HT,
                                     const reference::AttentionShape& shape, std::size_t sequence) {
  std::vector<float> values;
  for (std::size_t head = 0; head < shape.heads; ++head) {
    const auto begin =
        lse_HT.values().begin() + static_cast<std::ptrdiff_t>(head * shape.rows) + shape.starts[sequence];
    values.insert(values.end(), begin, begin + shape.lengths[sequence]);
  }
  return values;
}

}  // namespace plenum::kernels
