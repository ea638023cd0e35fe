#include "plenum/base/check.h"

#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plenum::base {
namespace {

using ::testing::HasSubstr;

TEST(Check, ReportsTheCallersPlace) {
  const int line = __LINE__ + 2;
  try {
    check(1 + 1 == 3, "sum is wrong: sum={}", 2);
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("check_test.cpp:" + std::to_string(line) + ": sum is wrong: sum=2"));
  }
}

TEST(Check, TakesNothingButBool) {
  static_assert(std::is_convertible_v<bool, Condition>);
  static_assert(!std::is_convertible_v<const char*, Condition>);
  static_assert(!std::is_convertible_v<int, Condition>);
}

TEST(Require, ThrowsUserErrorOnlyWhenItDoesNotHold) {
  EXPECT_NO_THROW(require(true, "never"));
  EXPECT_THROW(require(false, "depth must be at least 1: {}", 0), UserError);
}

TEST(UserError, StaysOneLineWhateverItQuotes) {
  EXPECT_STREQ(UserError("saw 'a\nb\x1b[1m'").what(), "saw 'a\\nb\\x1b[1m'");
}

}  // namespace
}  // namespace plenum::base
