#include "plenum/kernels/column_sums.h"

#include <gtest/gtest.h>

#include "plenum/kernels/linear.h"

#include "tests/ops/op_device.h"

namespace plenum::ops {
namespace {

using Sums = std::array<TestTensor<float>, 3>;

struct ColumnSumsCase {
  std::int64_t rows;
  std::int64_t width;
  std::array<bool, 3> is_wanted;

  std::string name() const {
    return fmt::format("T={} D={} parts {}{}{}", rows, width, is_wanted[0], is_wanted[1], is_wanted[2]);
  }
};

/// Every choice of parts; rows that fill no block, widths that are no multiple of eight.
std::vector<ColumnSumsCase> all_cases() {
  std::vector<ColumnSumsCase> cases;
  for (const auto& [rows, width] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
           {0, 8}, {1, 3}, {5, 16}, {131, 24}, {1000, 37}, {300, 768}, {40000, 8}}) {
    for (unsigned parts = 0; parts < 8; ++parts)
      cases.push_back({rows, width, {(parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0}});
  }
  return cases;
}

class AddColumnSumsOn : public OnDevice {
 protected:
  static Sums begun(std::int64_t width) {
    return {random_tensor({width}, 1), random_tensor({width}, 2), random_tensor({width}, 3)};
  }
  static TestTensor<float> matrix(const ColumnSumsCase& c) {
    return rounded(random_tensor({c.rows, 3 * c.width}, 4), device());
  }
  static Sums sums_of(const ColumnSumsCase& c) {
    const OpContext context(device(), kernels::linear_scratch_bytes(device()));
    Arguments arguments(context);
    const TestTensor<float> x_T3D = matrix(c);
    Sums sums = begun(c.width);
    kernels::AddColumnSums args{.x_T3D = arguments.in_compute(x_T3D), .sum_3_D = {}};
    for (std::size_t part = 0; part < sums.size(); ++part) {
      if (c.is_wanted[part]) args.sum_3_D[part] = arguments.out(sums[part]);
    }
    kernels::add_column_sums(context.stream(), args);
    arguments.fetch();
    return sums;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, AddColumnSumsOn, kDevices, device_of);

TEST_P(AddColumnSumsOn, AddsEachPartToItsVectorAndLeavesTheOthers) {
  for (const ColumnSumsCase& c : all_cases()) {
    SCOPED_TRACE(c.name());
    const std::vector<double> x = matrix(c).doubles();
    const Sums actual = sums_of(c);
    const Sums before = begun(c.width);
    for (std::size_t part = 0; part < actual.size(); ++part) {
      const auto D = static_cast<std::size_t>(c.width);
      std::vector<double> expected = before[part].doubles();
      double magnitude = 1;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (!c.is_wanted[part] || i % (3 * D) / D != part) continue;
        expected[i % D] += x[i];
        magnitude += std::abs(x[i]) / static_cast<double>(D);
      }
      for (std::size_t column = 0; column < D; ++column) {
        // Sums of as many terms in fp32: their rounding is relative to the sum of magnitudes.
        EXPECT_NEAR(actual[part].values()[column], expected[column], 1e-6 * magnitude)
            << part << " " << column;
      }
      if (!c.is_wanted[part]) {
        EXPECT_EQ(actual[part], before[part]);
      }
    }
  }
}

TEST_P(AddColumnSumsOn, GivesTheSameBytesTwice) {
  const ColumnSumsCase c = {1000, 768, {true, false, true}};
  EXPECT_EQ(sums_of(c), sums_of(c));
}

}  // namespace
}  // namespace plenum::ops
