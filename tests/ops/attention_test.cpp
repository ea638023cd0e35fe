#include "plenum/kernels/attention.h"

#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "plenum/kernels/attention_work.h"

#include "tests/ops/op_device.h"
#include "tests/reference/attention.h"
#include "tests/reference/attention_gradient.h"

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

/// How bits of dropout go from forward to backward.
struct KeptBits {
  std::int64_t offset = 0;    ///< of their place, from an aligned one
  std::int64_t missing = 0;   ///< bytes of it
  bool are_inverted = false;  ///< when backward gets them
};

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

  /// One of the sequences, without the others.
  AttentionRun alone(std::size_t sequence) const {
    const std::int32_t length = shape_.lengths[sequence];
    const AttentionShape shape{.rows = static_cast<std::size_t>(length),
                               .heads = shape_.heads,
                               .width = shape_.width,
                               .starts = {0},
                               .lengths = {length},
                               .samples = {shape_.samples[sequence]}};
    AttentionRun run({shape, dropout_.threshold}, device_);
    run.copy_sequence(*this, sequence, 0);
    return run;
  }

  // Gives one sequence the rows of another of the same length.
  void copy_sequence(const AttentionRun& source, std::size_t from, std::size_t to) {
    const auto copy = [&](const TestTensor<float>& source_tensor, TestTensor<float>& tensor) {
      const std::ptrdiff_t width = tensor.shape().num_elements() / T_;
      std::copy_n(source_tensor.values().begin() + source.shape_.starts[from] * width,
                  shape_.lengths[to] * width, tensor.values().begin() + shape_.starts[to] * width);
    };
    copy(source.qkv_, qkv_);
    copy(source.dcontext_, dcontext_);
  }
  // Gives all queries (part 0), keys (1) or values (2) the same elements.
  void fill_part(std::int64_t part, float value) {
    const std::int64_t width = H_ * size(shape_.width);
    for (std::int64_t row = 0; row < T_; ++row)
      std::fill_n(qkv_.values().begin() + (row * 3 + part) * width, width, value);
  }
  void fill_sequence(std::size_t sequence, float value) {
    for (TestTensor<float>* tensor : {&qkv_, &dcontext_}) {
      const std::ptrdiff_t width = tensor->shape().num_elements() / T_;
      std::fill_n(tensor->values().begin() + shape_.starts[sequence] * width,
                  shape_.lengths[sequence] * width, value);
    }
  }

  Result run() const { return run(OpContext(device_, scratch_bytes())); }
  /// With bits of dropout that forward keeps for backward.
  Result run_keeping_bits(const KeptBits& kept = {}) const {
    return run(OpContext(device_, scratch_bytes()), kept);
  }
  /// On the CPU with more threads.
  Result run_threads(std::size_t num_threads) const { return run(OpContext(num_threads, scratch_bytes())); }

  reference::Attention expected() const { return reference::attention(shape_, qkv_.doubles(), dropout_); }

  std::vector<double> expected_gradient() const {
    return reference::attention_gradient(shape_, qkv_.doubles(), dropout_, dcontext_.doubles());
  }
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
  AttentionSize attention_size() const {
    std::int32_t longest = 1;
    for (const std::int32_t length : shape_.lengths) longest = std::max(longest, length);
    return {T_, longest, H_, size(shape_.width)};
  }
  std::size_t scratch_bytes() const { return attention_scratch_bytes(device_, attention_size()) + 64; }

  static void invert(const tensor::Stream& stream, const tensor::TensorView& bits) {
    TestTensor<std::byte> host(bits.shape());
    tensor::copy(stream, bits, host.view());
    stream.wait();
    for (std::byte& byte : host.values()) byte = ~byte;
    tensor::copy(stream, host.view(), bits);
    stream.wait();
  }

  Result run(const OpContext& context, const std::optional<KeptBits>& kept = {}) const {
    const std::int64_t K = size(shape_.width);
    Result result{.context = TestTensor<float>({T_, H_, K}, 7.0F),
                  .lse = TestTensor<float>({H_, T_}, 7.0F),
                  .dqkv = TestTensor<float>({T_, 3, H_, K}, 7.0F)};
    const AttentionWorkList list = attention_work_list(offsets());
    const std::int64_t num_tiles = size(list.tiles_N4.size()) / 4;
    const std::int64_t num_gaps = size(list.gaps_G2.size()) / 2;
    const TestTensor<std::int32_t> counts(
        {2}, {static_cast<std::int32_t>(num_tiles), static_cast<std::int32_t>(num_gaps)});
    const TestTensor<std::int32_t> tiles({num_tiles, 4}, list.tiles_N4);
    const TestTensor<std::int32_t> gaps({num_gaps, 2}, list.gaps_G2);
    const TestTensor<std::int64_t> samples({size(shape_.samples.size())}, shape_.samples);

    ops::Arguments arguments(context);
    const AttentionWork work{.counts_2 = arguments.in(counts),
                             .tiles_N4 = arguments.in(tiles),
                             .gaps_G2 = arguments.in(gaps),
                             .sample_S = arguments.in(samples)};
    const tensor::ConstTensorView qkv = arguments.in_compute(qkv_);
    const tensor::TensorView out = arguments.out_compute(result.context);
    const tensor::TensorView lse = arguments.out(result.lse);
    tensor::TensorView keep_bits;
    const std::int64_t num_bytes = size(attention_keep_bytes(device_, attention_size()));
    TestTensor<std::byte> place({num_bytes + (kept ? kept->offset : 0)}, std::byte{0xA5});
    if (kept) {
      keep_bits = {arguments.out(place).data<std::byte>() + kept->offset, {num_bytes - kept->missing}};
    }
    attention_forward(context.stream(), {.qkv_T3HK = qkv,
                                         .sequences = offsets(),
                                         .samples = shape_.samples,
                                         .work = work,
                                         .dropout = dropout_,
                                         .context_THK = out,
                                         .lse_HT = lse,
                                         .keep_bits = keep_bits});
    if (kept && kept->are_inverted) invert(context.stream(), keep_bits);
    attention_backward(context.stream(), {.qkv_T3HK = qkv,
                                          .context_THK = out,
                                          .lse_HT = lse,
                                          .dcontext_THK = arguments.in_compute(dcontext_),
                                          .sequences = offsets(),
                                          .samples = shape_.samples,
                                          .work = work,
                                          .dropout = dropout_,
                                          .keep_bits = keep_bits,
                                          .dqkv_T3HK = arguments.out_compute(result.dqkv)});
    arguments.fetch();
    return result;
  }

  AttentionShape shape_;
  Dropout dropout_;
  tensor::Device device_;
  std::int64_t T_;
  std::int64_t H_;
  TestTensor<float> qkv_;
  TestTensor<float> dcontext_;
};

// What belongs to one sequence: context and dqkv, or of [H, T] its columns.
std::vector<float> rows_of(const TestTensor<float>& tensor, const AttentionShape& shape,
                           std::size_t sequence) {
  const std::ptrdiff_t width = tensor.shape().num_elements() / tensor.shape()[0];
  const auto begin = tensor.values().begin() + shape.starts[sequence] * width;
  return {begin, begin + shape.lengths[sequence] * width};
}
std::vector<float> columns_of(const TestTensor<float>& lse_HT, const AttentionShape& shape,
                              std::size_t sequence) {
  std::vector<float> values;
  for (std::size_t head = 0; head < shape.heads; ++head) {
    const auto begin =
        lse_HT.values().begin() + static_cast<std::ptrdiff_t>(head * shape.rows) + shape.starts[sequence];
    values.insert(values.end(), begin, begin + shape.lengths[sequence]);
  }
  return values;
}

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
  const Result result = run.run_threads(2);
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
    const Result once = run.run_threads(1);
    EXPECT_EQ(once, run.run_threads(1));
    EXPECT_EQ(once, run.run_threads(3));
  }
}

TEST(Attention, DoesNotDependOnWhereASequenceLies) {
  AttentionCase c = {shape_of(2, 8, {37, 5, 37}, 3), 26};
  c.shape.samples[2] = c.shape.samples[0];
  AttentionRun run(c);
  run.copy_sequence(run, 0, 2);
  const Result result = run.run();
  EXPECT_EQ(rows_of(result.context, c.shape, 0), rows_of(result.context, c.shape, 2));
  EXPECT_EQ(rows_of(result.dqkv, c.shape, 0), rows_of(result.dqkv, c.shape, 2));
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

/// Of the head widths that the GPU has kernels for. Lengths at the edges of their blocks, longer than a tile,
/// gaps.
std::vector<AttentionCase> wide_cases() {
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

class AttentionOfWideHeads : public ops::OnDevice {};
class AttentionOnGpu : public ops::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionOfWideHeads, ops::kDevices, ops::device_of);
INSTANTIATE_TEST_SUITE_P(Devices, AttentionOnGpu, ops::kGpuAlone, ops::device_of);

TEST_P(AttentionOfWideHeads, AgreesWithTheReference) {
  const double tolerance = ops::compute_tolerance(device());
  for (const AttentionCase& c : wide_cases()) {
    const AttentionRun run(c, device());
    const Result result = run.run();
    const reference::Attention expected = run.expected();
    ops::expect_near(result.context, expected.context, "context " + run.name(), tolerance);
    const auto of_sequences = [&](const auto& lse_HT) {  // in padding it means nothing
      std::vector<std::remove_cvref_t<decltype(lse_HT[0])>> values;
      for (std::size_t head = 0; head < c.shape.heads; ++head) {
        for (std::size_t s = 0; s < c.shape.starts.size(); ++s) {
          const auto begin =
              lse_HT.begin() + static_cast<std::ptrdiff_t>(head * c.shape.rows) + c.shape.starts[s];
          values.insert(values.end(), begin, begin + c.shape.lengths[s]);
        }
      }
      return values;
    };
    ops::expect_near(of_sequences(result.lse.values()), of_sequences(expected.lse), "lse " + run.name());
    // A single key has no gradient but dV, so dQ and dK may be all zeros: compare with dV among them.
    ops::expect_near(result.dqkv, run.expected_gradient(), "dqkv " + run.name(), tolerance);
  }
}

TEST_P(AttentionOfWideHeads, WritesTheSameBytesTwice) {
  for (const AttentionCase& c : wide_cases()) {
    const AttentionRun run(c, device());
    EXPECT_EQ(run.run(), run.run()) << run.name();
  }
}

TEST_P(AttentionOfWideHeads, WritesTheSameBytesWithBitsThatForwardKeeps) {
  for (const AttentionCase& c : wide_cases()) {
    const AttentionRun run(c, device());
    EXPECT_EQ(run.run(), run.run_keeping_bits()) << run.name();
  }
}

// The CPU keeps none, and draws anew.
TEST_P(AttentionOfWideHeads, BackwardReadsTheBitsThatForwardKeeps) {
  for (const AttentionCase& c : wide_cases()) {
    const bool has_bits = device() == tensor::Device::Cuda && c.threshold > 0;
    const AttentionRun run(c, device());
    const Result result = run.run_keeping_bits();
    const Result inverted = run.run_keeping_bits({.are_inverted = true});
    EXPECT_EQ(result.context, inverted.context) << run.name();
    EXPECT_EQ(result.dqkv != inverted.dqkv, has_bits) << run.name();
  }
}

TEST_P(AttentionOnGpu, RefusesAPlaceForBitsThatDoesNotFit) {
  const AttentionRun run({shape_of(2, 64, {70, 3}), 26}, device());
  EXPECT_NO_THROW(run.run_keeping_bits({.offset = 16}));
  EXPECT_THROW(run.run_keeping_bits({.missing = 1}), base::InternalError);
  EXPECT_THROW(run.run_keeping_bits({.offset = 8}), base::InternalError);
}

/// Compares what belongs to a sequence with the result of this sequence alone.
void expect_same_bytes(const Result& among, const AttentionShape& shape, std::size_t sequence,
                       const Result& alone) {
  EXPECT_EQ(rows_of(among.context, shape, sequence), alone.context.values());
  EXPECT_EQ(columns_of(among.lse, shape, sequence), alone.lse.values());
  EXPECT_EQ(rows_of(among.dqkv, shape, sequence), alone.dqkv.values());
}

TEST_P(AttentionOfWideHeads, GivesASequenceTheSameBytesAmongAnyNeighbours) {
  constexpr std::size_t kSequence = 1;
  constexpr float kNeighbours[] = {-3, 3e38F, std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN()};
  for (const std::size_t width : {64UL, 128UL}) {
    for (const std::int32_t length : {1, 20, 70, 190, 513}) {
      for (const std::uint32_t threshold : {0U, 26U}) {
        const AttentionCase among{shape_of(2, width, {90, length, 90}), threshold};
        AttentionRun run(among, device());
        const Result expected = run.alone(kSequence).run();
        for (const float neighbour : kNeighbours) {
          run.fill_sequence(0, neighbour);
          run.fill_sequence(2, neighbour);
          SCOPED_TRACE(fmt::format("{} beside {}", run.name(), neighbour));
          expect_same_bytes(run.run(), among.shape, kSequence, expected);
        }
      }
    }
  }
}

// Some 640 heads of sequences: on the GPU each thread block takes several, one after another.
TEST_P(AttentionOfWideHeads, GivesASequenceTheSameBytesAmongMany) {
  const std::size_t heads = device() == tensor::Device::Cuda ? 16 : 1;
  std::vector<std::int32_t> lengths = {300, 2048, 513, 300};
  for (int i = 0; i < 9; ++i) lengths.insert(lengths.end(), {1, 64, 65, 193});
  for (const std::uint32_t threshold : {0U, 26U}) {
    const AttentionCase among{shape_of(heads, 64, lengths, 3), threshold};
    const AttentionRun run(among, device());
    const Result result = run.run();
    EXPECT_EQ(result, run.run());
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      SCOPED_TRACE(fmt::format("sequence {} of {} tokens, threshold {}", s, lengths[s], threshold));
      expect_same_bytes(result, among.shape, s, run.alone(s).run());
    }
  }
}

// All scores are -512: exponentials of scores would vanish, those of the sums' logarithms overflow.
TEST_P(AttentionOfWideHeads, StaysFiniteForScoresFarBelowZero) {
  for (const std::int32_t length : {1, 70, 250}) {
    AttentionRun run({shape_of(2, 64, {length}), 26}, device());
    run.fill_part(0, 8);
    run.fill_part(1, -8);
    const Result result = run.run();
    ops::expect_near(result.context, run.expected().context, "context " + run.name(),
                     ops::compute_tolerance(device()));
    for (const float value : result.dqkv.values()) ASSERT_TRUE(std::isfinite(value)) << run.name();
  }
}

TEST_P(AttentionOfWideHeads, LeavesPaddingZero) {
  for (const std::size_t width : {64UL, 128UL}) {
    const Result result = AttentionRun({shape_of(2, width, {2, 1}, 1), 26}, device()).run();
    for (const std::size_t row : {0UL, 3UL, 5UL}) {
      for (std::size_t i = 0; i < 2 * width; ++i) EXPECT_EQ(result.context.values()[row * 2 * width + i], 0);
      for (std::size_t i = 0; i < 6 * width; ++i) EXPECT_EQ(result.dqkv.values()[row * 6 * width + i], 0);
    }
  }
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
