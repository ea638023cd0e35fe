#include "plenum/kernels/attention.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/ops/attention_run.h"
#include "tests/ops/op_device.h"

namespace plenum::kernels {
namespace {

using ops::OpContext;
using ops::TestTensor;
using reference::AttentionShape;

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

class AttentionOfWideHeads : public ops::OnDevice {};
class AttentionOnGpu : public ops::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionOfWideHeads, ops::kDevices, ops::device_of);
INSTANTIATE_TEST_SUITE_P(Devices, AttentionOnGpu, ops::kGpuAlone, ops::device_of);

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

TEST_P(AttentionOfWideHeads, GivesSomeHeadsTheSameBytesAsAmongAll) {
  for (const std::uint32_t threshold : {0U, 26U, 200U}) {
    const AttentionRun run({shape_of(4, 64, {1, 70, 130, 40}, 1), threshold}, device());
    const AttentionResult all = run.run();
    for (const auto& [first, count] : {std::pair(0, 1), std::pair(1, 3), std::pair(2, 2)}) {
      const AttentionResult some = run.heads(first, count).run();
      EXPECT_EQ(some.context, run.heads_of(all.context, first, count)) << first << " " << threshold;
      EXPECT_EQ(some.dqkv, run.heads_of(all.dqkv, first, count)) << first << " " << threshold;
    }
  }
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
