#include "plenum/kernels/cpu/dropout.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "plenum/base/philox.h"
#include "plenum/kernels/layer_norm.h"

#include "tests/ops/op_device.h"
#include "tests/reference/dropout.h"

namespace plenum::kernels {
namespace {

Dropout some_dropout(std::uint32_t threshold) {
  return {.threshold = threshold,
          .key = base::RandomFunction(7, base::Purpose::Dropout, 3).key(),
          .layer = 11,
          .site = DropoutSite::MlpOutput};
}

TEST(Dropout, KeyAndCountersAreThoseOfTheRandomFunction) {
  const Dropout dropout = some_dropout(26);
  const base::RandomFunction random(7, base::Purpose::Dropout, 3);
  const std::uint64_t sample = 0xABCD12345678;
  const base::PhiloxCounter words = random(sample, 99, 4 * 11 + 3, 5);
  for (std::uint32_t byte = 0; byte < 16; ++byte) {
    const bool is_dropped = ((words[byte / 4] >> (8 * (byte % 4))) & 0xFF) < 26;
    EXPECT_EQ(reference::dropout_factor(dropout, sample, 99, 5 * 16 + byte) == 0, is_dropped);
  }
}

TEST(Dropout, BytesOfAnyBoxAgreeWithTheDefinition) {
  const Dropout dropout = some_dropout(100);
  for (const std::uint32_t num_groups : {1U, 2U, 3U, 5U, 15U, 16U, 17U, 48U}) {
    for (const std::uint32_t num_positions : {1U, 2U, 7U}) {
      const cpu::DropoutBox box = {.sample = 0x0123456789AB,
                                   .first_position = 500,
                                   .num_positions = num_positions,
                                   .first_group = 3 * 65536,
                                   .num_groups = num_groups};
      std::vector<std::uint8_t> bytes(workspace::dropout_buffer_bytes(num_positions * num_groups));
      cpu::draw_dropout_bytes(dropout, box, bytes.data());
      for (std::uint32_t p = 0; p < num_positions; ++p) {
        for (std::uint32_t c = 0; c < num_groups * 16; ++c) {
          const double factor =
              reference::dropout_factor(dropout, box.sample, 500 + p, box.first_group * 16 + c);
          ASSERT_EQ(bytes[p * num_groups * 16 + c] < dropout.threshold, factor == 0)
              << num_groups << " groups, position " << p << ", channel " << c;
        }
      }
    }
  }
}

class DropoutOfRows : public ops::OnDevice {};
INSTANTIATE_TEST_SUITE_P(On, DropoutOfRows, ops::kDevices, ops::device_of);

// Layer norm keeps what dropout leaves of its input.
TEST_P(DropoutOfRows, DecidesByTheDefinition) {
  for (const std::int64_t width : {1, 24, 47, 768, 1024, 2000}) {
    constexpr std::int64_t kRows = 11;
    const Dropout dropout = some_dropout(128);  // what stays is doubled
    ops::TestTensor<std::int64_t> samples({kRows});
    ops::TestTensor<std::int32_t> positions({kRows});
    for (std::size_t row = 0; row < kRows; ++row) {
      samples.values()[row] = 0xFEDC00000000 + static_cast<std::int64_t>(row / 2);
      positions.values()[row] = static_cast<std::int32_t>(row * 70'000);
    }
    const ops::TestTensor<float> x({kRows, width}, 1.0F), gamma({width}), beta({width});
    ops::TestTensor<float> z({kRows, width}), y({kRows, width});
    const ops::OpContext context(device());
    ops::Arguments arguments(context);
    LayerNormForward args;
    args.x_TD = arguments.in_compute(x);
    args.gamma_D = arguments.in(gamma);
    args.beta_D = arguments.in(beta);
    args.dropout = dropout;
    args.rows = {.sample_T = arguments.in(samples), .position_T = arguments.in(positions)};
    args.z_TD = arguments.out_compute(z);
    args.y_TD = arguments.out_compute(y);
    layer_norm_forward(context.stream(), args);
    arguments.fetch();
    for (std::size_t i = 0; i < z.values().size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(width);
      const auto channel = static_cast<std::uint32_t>(i % static_cast<std::size_t>(width));
      ASSERT_EQ(z.values()[i],
                reference::dropout_factor(dropout, static_cast<std::uint64_t>(samples.values()[row]),
                                          static_cast<std::uint32_t>(positions.values()[row]), channel))
          << "width " << width << ", row " << row << ", channel " << channel;
    }
  }
}

TEST(Dropout, DropsTheShareItIsAskedFor) {
  constexpr std::uint32_t kPositions = 512;
  constexpr std::uint32_t kGroups = 48;
  for (const std::uint32_t threshold : {1U, 26U, 128U, 255U}) {
    const Dropout dropout = some_dropout(threshold);
    std::vector<std::uint8_t> bytes(workspace::dropout_buffer_bytes(kPositions * kGroups));
    cpu::draw_dropout_bytes(dropout, {.sample = 1, .num_positions = kPositions, .num_groups = kGroups},
                            bytes.data());
    double dropped = 0;
    for (const std::uint8_t byte : bytes) dropped += byte < threshold ? 1 : 0;
    const double count = static_cast<double>(bytes.size());
    const double rate = threshold / 256.0;
    EXPECT_NEAR(dropped / count, rate, 5 * std::sqrt(rate * (1 - rate) / count));
  }
}

TEST(Dropout, ThresholdIsNearestToTheRate) {
  EXPECT_EQ(dropout_threshold(0), 0U);
  EXPECT_EQ(dropout_threshold(0.1), 26U);
  EXPECT_EQ(dropout_threshold(0.5), 128U);
  EXPECT_EQ(dropout_threshold(0.9999), 255U);
}

}  // namespace
}  // namespace plenum::kernels
