#include "plenum/report/axis.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::report {
namespace {

std::vector<double> values_of(const std::vector<AxisTick>& ticks) {
  std::vector<double> values;
  for (const AxisTick& tick : ticks) values.push_back(tick.value);
  return values;
}

TEST(Axis, HasRoundTicks) {
  EXPECT_THAT(values_of(ticks_of({0, 10, Scale::Linear}, 5)), testing::ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(values_of(ticks_of({0.5, 2000, Scale::Logarithmic}, 5)),
              testing::ElementsAre(1, 10, 100, 1000));
}

TEST(Axis, OfValuesThatAreTheSameButForRoundingHasFewTicks) {
  for (const double value : {0.1, 0.6931471805599453, -3.0, 1e17}) {
    const double next = std::nextafter(value, 1e300);
    for (const Scale scale : {Scale::Linear, Scale::Logarithmic}) {
      if (scale == Scale::Logarithmic && value <= 0) continue;
      const Axis axis = axis_of(value, next, scale);
      EXPECT_LT(axis.from, value);
      EXPECT_GT(axis.to, next);
      EXPECT_LT(ticks_of(axis, 5).size(), 12U) << value;
    }
  }
}

}  // namespace
}  // namespace plenum::report
