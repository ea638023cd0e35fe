#include "plenum/schedule/simulate/layer_profile.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

constexpr std::string_view kHeader =
    "bs,time_f,time_b,time_kron,time_inv,time_prec,mem_param,mem_act,mem_peak_err,mem_save_err,mem_kron\n";
constexpr std::string_view kRow = "8,1,2,3,4,5,6,7,8,9,10\n";

std::string message_of(std::string_view text) {
  try {
    parse_layer_profile(text, "layer.csv");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with_header(std::string_view rows) {
  return std::string(kHeader) + std::string(rows);
}

TEST(LayerProfile, HoldsSecondsAndBytes) {
  const LayerCosts costs = parse_layer_profile(with_header(kRow), "layer.csv").row(8);
  EXPECT_DOUBLE_EQ(costs.forward_seconds, 0.001);
  EXPECT_DOUBLE_EQ(costs.backward_seconds, 0.002);
  EXPECT_DOUBLE_EQ(costs.curvature_seconds, 0.003);
  EXPECT_DOUBLE_EQ(costs.inversion_seconds, 0.004);
  EXPECT_DOUBLE_EQ(costs.precondition_seconds, 0.005);
  EXPECT_DOUBLE_EQ(costs.parameter_bytes, 6 * 1048576.0);
  EXPECT_DOUBLE_EQ(costs.activation_bytes, 7 * 1048576.0);
  EXPECT_DOUBLE_EQ(costs.peak_error_bytes, 8 * 1048576.0);
  EXPECT_DOUBLE_EQ(costs.saved_error_bytes, 9 * 1048576.0);
  EXPECT_DOUBLE_EQ(costs.factor_bytes, 10 * 1048576.0);
}

TEST(LayerProfile, FindsColumnsByNameInAnyOrderAndIgnoresOthers) {
  const LayerProfile profile = parse_layer_profile(
      "device, mem_kron,time_b,time_f,bs,time_kron,time_inv,time_prec,mem_param,mem_act,mem_peak_err,"
      "mem_save_err\r\n\r\np100,10,2,1,8,3,4,5,6,7,8,9\r\n",
      "layer.csv");
  EXPECT_DOUBLE_EQ(profile.row(8).forward_seconds, 0.001);
  EXPECT_DOUBLE_EQ(profile.row(8).factor_bytes, 10 * 1048576.0);
}

TEST(LayerProfile, IsLinearBetweenMeasuredSizes) {
  const LayerProfile profile =
      parse_layer_profile(with_header("16,3,2,3,4,5,6,7,8,9,30\n8,1,2,3,4,5,6,7,8,9,10\n"), "layer.csv");
  EXPECT_DOUBLE_EQ(profile.row(8).forward_seconds, 0.001);
  EXPECT_DOUBLE_EQ(profile.row(16).forward_seconds, 0.003);
  EXPECT_DOUBLE_EQ(profile.row(10).forward_seconds, 0.0015);
  EXPECT_DOUBLE_EQ(profile.row(10).backward_seconds, 0.002);
  EXPECT_DOUBLE_EQ(profile.row(12).factor_bytes, 20 * 1048576.0);
}

TEST(LayerProfile, RefusesSizesOutsideAndNamesThoseInside) {
  const LayerProfile profile =
      parse_layer_profile(with_header("16,3,2,3,4,5,6,7,8,9,30\n8,1,2,3,4,5,6,7,8,9,10\n"), "layer.csv");
  for (const std::int64_t batch : {0, 7, 17}) {
    try {
      profile.row(batch);
      ADD_FAILURE() << batch;
    } catch (const base::UserError& error) {
      EXPECT_EQ(error.what(),
                fmt::format("layer.csv: batch size {} lies outside of what was measured: 8, 16", batch));
    }
  }
}

TEST(LayerProfile, RefusesWhatIsNotAProfileWithItsLine) {
  EXPECT_EQ(message_of(""), "layer.csv: the profile is empty");
  EXPECT_EQ(message_of("\n \n"), "layer.csv: the profile is empty");
  EXPECT_EQ(message_of("bs,time_f\n1,2\n"), "layer.csv:1: the header lacks the column time_b");
  EXPECT_EQ(message_of(std::string("bs,") + with_header(kRow)), "layer.csv:1: the header names bs twice");
  EXPECT_EQ(message_of(kHeader), "layer.csv:1: the profile has no rows below its header");
  EXPECT_EQ(message_of(with_header("8,1,2\n")),
            "layer.csv:2: the line has 3 fields, but the header names 11");
  EXPECT_EQ(message_of(with_header("8,1,-2,3,4,5,6,7,8,9,10\n")),
            "layer.csv:2: time_b must not be negative: -2");
  EXPECT_EQ(message_of(with_header("\n8,1,fast,3,4,5,6,7,8,9,10\n")),
            "layer.csv:3: time_b must be a number: 'fast'");
  EXPECT_EQ(message_of(with_header("8,1,,3,4,5,6,7,8,9,10\n")), "layer.csv:2: time_b must be a number: ''");
  EXPECT_EQ(message_of(with_header("8,nan,2,3,4,5,6,7,8,9,10\n")),
            "layer.csv:2: time_f must be a number: 'nan'");
  EXPECT_EQ(message_of(with_header("8,inf,2,3,4,5,6,7,8,9,10\n")),
            "layer.csv:2: time_f must be a number: 'inf'");
  EXPECT_EQ(message_of(with_header("8,1,2,3,4,5,6,7,8,9,1e308\n")),
            "layer.csv:2: mem_kron is too large: 1e308");
  EXPECT_EQ(message_of(with_header("8,1e305,2,3,4,5,6,7,8,9,10\n")),
            "layer.csv:2: time_f is too large: 1e305");
  EXPECT_EQ(message_of(with_header("0,1,2,3,4,5,6,7,8,9,10\n")),
            "layer.csv:2: bs must be a whole number greater than zero: 0");
  EXPECT_EQ(message_of(with_header("1.5,1,2,3,4,5,6,7,8,9,10\n")),
            "layer.csv:2: bs must be a whole number greater than zero: 1.5");
  EXPECT_EQ(message_of(with_header(std::string(kRow) + std::string(kRow))),
            "layer.csv:3: batch size 8 was given before");
  EXPECT_THAT(message_of(with_header("8," + std::string(1000, '1') + ",2,3,4,5,6,7,8,9,10\n")),
              testing::AllOf(testing::StartsWith("layer.csv:2: time_f must be a number: '1111"),
                             testing::SizeIs(testing::Lt(100))));
}

}  // namespace
}  // namespace plenum::schedule
