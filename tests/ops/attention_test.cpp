#include "plenum/kernels/attention.h"

#include <gtest/gtest.h>

#include "tests/ops/op_testing.h"
#include "tests/reference/attention.h"

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;
using reference::AttentionShape;

Dropout some_dropout(std::uint32_t threshold) {
  return {.threshold = threshold,
          .key = base::RandomFunction(5, base::Purpose::Dropout, 1).key(),
          .layer = 2,
          .site = DropoutSite::AttentionWeights};
}

// Sequences one behind the other, `gap` padding rows before each and behind the last.
AttentionShape shape_of(std::size_t heads, std::size_t width, std::vector<std::int32_t> lengths,
                        std::int32_t gap = 0) {
  AttentionShape shape;
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
  AttentionShape shape;
  std::uint32_t threshold;
};

std::vector<AttentionCase> small_cases() {
  std::vector<AttentionCase> cases;
  for (const std::uint32_t threshold : {0U, 26U, 128U}) {
    cases.push_back({shape_of(1, 1, {1}), threshold});
    cases.push_back({shape_of(2, 4, {1, 5, 3}), threshold});
    cases.push_back({shape_of(3, 5, {2, 1, 4}, 2), threshold});
    cases.push_back({shape_of(1, 16, {17}), threshold});
  }
  return cases;
}

struct Result {
  TestTensor<float> context;
  TestTensor<float> lse;
  TestTensor<float> dqkv;
  friend bool operator==(const Result&, const Result&) = default;
};

class AttentionRun {
 public:
  explicit AttentionRun(const AttentionCase& c)
      : shape_(c.shape), dropout_(some_dropout(c.threshold)), T_(size(shape_.rows)), H_(size(shape_.heads)) {
    const std::int64_t K = size(shape_.width);
    qkv_ = ops::random_tensor({T_, 3, H_, K}, 1, 2.0);
    dcontext_ = ops::random_tensor({T_, H_, K}, 2);
    // Nothing may read padding: what it holds in the gradient would be seen.
    const tensor::SequenceOffsets sequences = offsets();
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

  // Gives one sequence the rows of another of the same length.
  void copy_sequence(std::size_t from, std::size_t to) {
    for (TestTensor<float>* tensor : {&qkv_, &dcontext_}) {
      const std::ptrdiff_t width = tensor->shape().num_elements() / T_;
      const auto values = tensor->values().begin();
      std::copy_n(values + shape_.starts[from] * width, shape_.lengths[from] * width,
                  values + shape_.starts[to] * width);
    }
  }

  Result run(std::size_t num_threads = 1) const {
    const std::int64_t K = size(shape_.width);
    std::int32_t longest = 1;
    for (const std::int32_t length : shape_.lengths) longest = std::max(longest, length);
    const OpContext context(num_threads,
                            attention_scratch_bytes(tensor::Device::Cpu, {T_, longest, H_, K}) + 64);
    Result result{.context = TestTensor<float>({T_, H_, K}, 7.0F),
                  .lse = TestTensor<float>({H_, T_}, 7.0F),
                  .dqkv = TestTensor<float>({T_, 3, H_, K}, 7.0F)};
    attention_forward(context.stream(), {.qkv_T3HK = qkv_,
                                         .sequences = offsets(),
                                         .samples = shape_.samples,
                                         .dropout = dropout_,
                                         .context_THK = result.context,
                                         .lse_HT = result.lse});
    attention_backward(context.stream(), {.qkv_T3HK = qkv_,
                                          .context_THK = result.context,
                                          .lse_HT = result.lse,
                                          .dcontext_THK = dcontext_,
                                          .sequences = offsets(),
                                          .samples = shape_.samples,
                                          .dropout = dropout_,
                                          .dqkv_T3HK = result.dqkv});
    return result;
  }

  reference::Attention expected() const { return reference::attention(shape_, qkv_.doubles(), dropout_); }

  // Central differences of the oracle for some of the elements.
  std::vector<double> expected_gradient(const std::vector<std::size_t>& elements) const {
    const std::vector<double> dcontext = dcontext_.doubles();
    std::vector<double> qkv = qkv_.doubles();
    std::vector<double> point;
    for (const std::size_t i : elements) point.push_back(qkv[i]);
    return ops::numeric_gradient(point, [&](const std::vector<double>& at) {
      for (std::size_t i = 0; i < elements.size(); ++i) qkv[elements[i]] = at[i];
      return ops::dot(reference::attention(shape_, qkv, dropout_).context, dcontext);
    });
  }

  std::string name() const {
    std::string text = fmt::format("H={} K={} threshold={} lengths", H_, shape_.width, dropout_.threshold);
    for (const std::int32_t length : shape_.lengths) text += fmt::format(" {}", length);
    return text;
  }

 private:
  static std::int64_t size(std::size_t value) { return static_cast<std::int64_t>(value); }
  tensor::SequenceOffsets offsets() const { return {shape_.starts, shape_.lengths, T_}; }

  AttentionShape shape_;
  Dropout dropout_;
  std::int64_t T_;
  std::int64_t H_;
  TestTensor<float> qkv_;
  TestTensor<float> dcontext_;
};

std::vector<std::size_t> all_elements(const TestTensor<float>& tensor) {
  std::vector<std::size_t> elements(tensor.values().size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = i;
  return elements;
}

TEST(AttentionForward, AgreesWithTheReference) {
  for (const AttentionCase& c : small_cases()) {
    const AttentionRun run(c);
    const Result result = run.run();
    const reference::Attention expected = run.expected();
    ops::expect_near(result.context, expected.context, "context " + run.name());
    ops::expect_near(result.lse, expected.lse, "lse " + run.name());
  }
}

TEST(AttentionBackward, AgreesWithDifferencesOfTheReference) {
  for (const AttentionCase& c : small_cases()) {
    const AttentionRun run(c);
    const Result result = run.run();
    ops::expect_near(result.dqkv, run.expected_gradient(all_elements(result.dqkv)), "dqkv " + run.name(),
                     ops::kGradientRelative);
  }
}

/// Compares results with the reference, of the gradient only these elements: a difference costs two passes.
void expect_agreement(const AttentionRun& run, const std::vector<std::size_t>& elements) {
  const Result result = run.run(2);
  const reference::Attention expected = run.expected();
  ops::expect_near(result.context, expected.context, "context");
  ops::expect_near(result.lse, expected.lse, "lse");
  std::vector<float> gradients;
  for (const std::size_t i : elements) gradients.push_back(result.dqkv.values()[i]);
  ops::expect_near(gradients, run.expected_gradient(elements), "dqkv", ops::kGradientRelative);
}

TEST(Attention, AgreesWithTheReferenceOverSeveralBlocksOfQueries) {
  const AttentionCase c = {shape_of(2, 24, {131, 7, 300}, 1), 26};
  const std::size_t count = c.shape.rows * 3 * c.shape.heads * c.shape.width;
  std::vector<std::size_t> elements;
  for (std::size_t i = 5; i < count; i += count / 8 + 1) elements.push_back(i);
  expect_agreement(AttentionRun(c), elements);
}

TEST(Attention, AgreesWithTheReferenceOverSeveralBlocksOfKeys) {
  constexpr std::size_t kWidth = 3;
  std::vector<std::size_t> elements;
  for (const std::size_t row : {2UL, 431UL, 432UL, 799UL}) {
    for (const std::size_t which : {0UL, 1UL, 2UL}) elements.push_back((row * 3 + which) * kWidth + 1);
  }
  expect_agreement(AttentionRun({shape_of(1, kWidth, {800}), 0}), elements);
}

TEST(Attention, WritesTheSameBytesTwiceAndForAnyNumberOfThreads) {
  for (const std::uint32_t threshold : {0U, 26U}) {
    const AttentionRun run({shape_of(3, 16, {5, 140, 1, 64, 65, 300}, 3), threshold});
    const Result once = run.run(1);
    EXPECT_EQ(once, run.run(1));
    EXPECT_EQ(once, run.run(3));
  }
}

TEST(Attention, DoesNotDependOnWhereASequenceLies) {
  AttentionCase c = {shape_of(2, 8, {37, 5, 37}, 3), 26};
  c.shape.samples[2] = c.shape.samples[0];
  AttentionRun run(c);
  run.copy_sequence(0, 2);
  const Result result = run.run();
  const auto rows_of = [&](const TestTensor<float>& tensor, std::size_t sequence) {
    const std::ptrdiff_t width = tensor.shape().num_elements() / tensor.shape()[0];
    const auto begin = tensor.values().begin() + c.shape.starts[sequence] * width;
    return std::vector<float>(begin, begin + c.shape.lengths[sequence] * width);
  };
  EXPECT_EQ(rows_of(result.context, 0), rows_of(result.context, 2));
  EXPECT_EQ(rows_of(result.dqkv, 0), rows_of(result.dqkv, 2));
}

TEST(Attention, LeavesPaddingZero) {
  const Result result = AttentionRun({shape_of(1, 4, {2, 1}, 1), 26}).run();
  for (const std::size_t row : {0U, 3U, 5U}) {
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(result.context.values()[row * 4 + k], 0);
    for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(result.dqkv.values()[row * 12 + k], 0);
    EXPECT_EQ(result.lse.values()[row], 0);
  }
}

TEST(Attention, DoesNothingWithoutSequences) {
  const Result none = AttentionRun({shape_of(2, 4, {}), 26}).run();
  EXPECT_TRUE(none.dqkv.values().empty());
  const Result padding = AttentionRun({shape_of(2, 4, {}, 3), 26}).run();
  for (const float value : padding.dqkv.values()) EXPECT_EQ(value, 0);
}

TEST(AttentionForward, StaysFiniteForLargeScores) {
  const TestTensor<float> qkv = ops::random_tensor({9, 3, 1, 4}, 3, 1e4);
  const std::vector<std::int32_t> starts = {0};
  const std::vector<std::int32_t> lengths = {9};
  const OpContext context(1, attention_scratch_bytes(tensor::Device::Cpu, {9, 9, 1, 4}) + 64);
  TestTensor<float> out({9, 1, 4});
  TestTensor<float> lse({1, 9});
  attention_forward(context.stream(), {.qkv_T3HK = qkv,
                                       .sequences = {starts, lengths, 9},
                                       .samples = {},
                                       .dropout = {},
                                       .context_THK = out,
                                       .lse_HT = lse});
  for (const float value : out.values()) EXPECT_TRUE(std::isfinite(value));
  for (const float value : lse.values()) EXPECT_TRUE(std::isfinite(value));
}

TEST(AttentionForward, RefusesSequencesThatDoNotFit) {
  const TestTensor<float> qkv({4, 3, 1, 2});
  TestTensor<float> out({4, 1, 2});
  TestTensor<float> lse({1, 4});
  const OpContext context;
  const auto run = [&](std::vector<std::int32_t> starts, std::vector<std::int32_t> lengths, Dropout dropout) {
    attention_forward(context.stream(), {.qkv_T3HK = qkv,
                                         .sequences = {starts, lengths, 4},
                                         .samples = {},
                                         .dropout = dropout,
                                         .context_THK = out,
                                         .lse_HT = lse});
  };
  EXPECT_NO_THROW(run({0, 2}, {2, 2}, {}));
  EXPECT_THROW(run({0, 1}, {2, 2}, {}), base::InternalError);
  EXPECT_THROW(run({0, 2}, {2, 3}, {}), base::InternalError);
  EXPECT_THROW(run({0, 2}, {2, 0}, {}), base::InternalError);
  EXPECT_THROW(run({0, 2}, {2, 2}, some_dropout(26)), base::InternalError);
}

}  // namespace
}  // namespace plenum::kernels
