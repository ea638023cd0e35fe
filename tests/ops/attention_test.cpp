#include "plenum/kernels/attention.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/attention_run.h"

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;
using reference::AttentionShape;

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

std::vector<std::size_t> all_elements(const TestTensor<float>& tensor) {
  std::vector<std::size_t> elements(tensor.values().size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = i;
  return elements;
}

TEST(AttentionForward, AgreesWithTheReference) {
  for (const AttentionCase& c : small_cases()) {
    const AttentionRun run(c);
    const AttentionResult result = run.run();
    const reference::Attention expected = run.expected();
    ops::expect_near(result.context, expected.context, "context " + run.name());
    ops::expect_near(result.lse, expected.lse, "lse " + run.name());
  }
}

TEST(AttentionBackward, AgreesWithDifferencesOfTheReference) {
  for (const AttentionCase& c : small_cases()) {
    const AttentionRun run(c);
    const AttentionResult result = run.run();
    ops::expect_near(result.dqkv, run.expected_gradient(all_elements(result.dqkv)), "dqkv " + run.name(),
                     ops::kGradientRelative);
  }
}

/// Compares results with the reference, of the gradient only these elements: a difference costs two passes.
void expect_agreement(const AttentionRun& run, const std::vector<std::size_t>& elements) {
  const AttentionResult result = run.run_threads(2);
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
    const AttentionResult once = run.run_threads(1);
    EXPECT_EQ(once, run.run_threads(1));
    EXPECT_EQ(once, run.run_threads(3));
  }
}

TEST(Attention, DoesNotDependOnWhereASequenceLies) {
  AttentionCase c = {shape_of(2, 8, {37, 5, 37}, 3), 26};
  c.shape.samples[2] = c.shape.samples[0];
  AttentionRun run(c);
  run.copy_sequence(run, 0, 2);
  const AttentionResult result = run.run();
  EXPECT_EQ(rows_of(result.context, c.shape, 0), rows_of(result.context, c.shape, 2));
  EXPECT_EQ(rows_of(result.dqkv, c.shape, 0), rows_of(result.dqkv, c.shape, 2));
}

TEST(Attention, LeavesPaddingZero) {
  const AttentionResult result = AttentionRun({shape_of(1, 4, {2, 1}, 1), 26}).run();
  for (const std::size_t row : {0U, 3U, 5U}) {
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(result.context.values()[row * 4 + k], 0);
    for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(result.dqkv.values()[row * 12 + k], 0);
    EXPECT_EQ(result.lse.values()[row], 0);
  }
}

TEST(Attention, DoesNothingWithoutSequences) {
  const AttentionResult none = AttentionRun({shape_of(2, 4, {}), 26}).run();
  EXPECT_TRUE(none.dqkv.values().empty());
  const AttentionResult padding = AttentionRun({shape_of(2, 4, {}, 3), 26}).run();
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
    const AttentionResult result = run.run();
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
    const AttentionResult result = run.run_keeping_bits();
    const AttentionResult inverted = run.run_keeping_bits({.are_inverted = true});
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
void expect_same_bytes(const AttentionResult& among, const AttentionShape& shape, std::size_t sequence,
                       const AttentionResult& alone) {
  EXPECT_EQ(rows_of(among.context, shape, sequence), alone.context.values());
  EXPECT_EQ(columns_of(among.lse, shape, sequence), alone.lse.values());
  EXPECT_EQ(rows_of(among.dqkv, shape, sequence), alone.dqkv.values());
}

// The tests of these two take longest under compute-sanitizer, which runs tests side by side: one for each
// width, and for each threshold.

void expect_same_bytes_among_any_neighbours(std::size_t width, tensor::Device device) {
  constexpr std::size_t kSequence = 1;
  constexpr float kNeighbours[] = {-3, 3e38F, std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN()};
  for (const std::int32_t length : {1, 20, 70, 190, 513}) {
    for (const std::uint32_t threshold : {0U, 26U}) {
      const AttentionCase among{shape_of(2, width, {90, length, 90}), threshold};
      AttentionRun run(among, device);
      const AttentionResult expected = run.alone(kSequence).run();
      for (const float neighbour : kNeighbours) {
        run.fill_sequence(0, neighbour);
        run.fill_sequence(2, neighbour);
        SCOPED_TRACE(fmt::format("{} beside {}", run.name(), neighbour));
        expect_same_bytes(run.run(), among.shape, kSequence, expected);
      }
    }
  }
}

TEST_P(AttentionOfWideHeads, GivesASequenceTheSameBytesAmongAnyNeighbours) {
  expect_same_bytes_among_any_neighbours(64, device());
}

TEST_P(AttentionOfWideHeads, GivesASequenceTheSameBytesAmongAnyNeighboursAtWidth128) {
  expect_same_bytes_among_any_neighbours(128, device());
}

// Some 320 heads of sequences: on the GPU each thread block takes several, one after another.
void expect_same_bytes_among_many(std::uint32_t threshold, tensor::Device device) {
  const std::size_t heads = device == tensor::Device::Cuda ? 8 : 1;
  std::vector<std::int32_t> lengths = {300, 2048, 513, 300};
  for (int i = 0; i < 9; ++i) lengths.insert(lengths.end(), {1, 64, 65, 193});
  const AttentionCase among{shape_of(heads, 64, lengths, 3), threshold};
  const AttentionRun run(among, device);
  const AttentionResult result = run.run();
  EXPECT_EQ(result, run.run());
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    SCOPED_TRACE(fmt::format("sequence {} of {} tokens", s, lengths[s]));
    expect_same_bytes(result, among.shape, s, run.alone(s).run());
  }
}

TEST_P(AttentionOfWideHeads, GivesASequenceTheSameBytesAmongMany) {
  expect_same_bytes_among_many(0, device());
}

TEST_P(AttentionOfWideHeads, GivesASequenceTheSameBytesAmongManyWithDropout) {
  expect_same_bytes_among_many(26, device());
}

// All scores are -512: exponentials of scores would vanish, those of the sums' logarithms overflow.
TEST_P(AttentionOfWideHeads, StaysFiniteForScoresFarBelowZero) {
  for (const std::int32_t length : {1, 70, 250}) {
    AttentionRun run({shape_of(2, 64, {length}), 26}, device());
    run.fill_part(0, 8);
    run.fill_part(1, -8);
    const AttentionResult result = run.run();
    ops::expect_near(result.context, run.expected().context, "context " + run.name(),
                     ops::compute_tolerance(device()));
    for (const float value : result.dqkv.values()) ASSERT_TRUE(std::isfinite(value)) << run.name();
  }
}

TEST_P(AttentionOfWideHeads, LeavesPaddingZero) {
  for (const std::size_t width : {64UL, 128UL}) {
    const AttentionResult result = AttentionRun({shape_of(2, width, {2, 1}, 1), 26}, device()).run();
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
