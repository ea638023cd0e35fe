#pragma once

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::test {

/// The message of the UserError that `call` throws, which is one line; "no error" if it throws none.
template <typename Call>
std::string user_error_of(Call&& call) {
  try {
    call();
  } catch (const base::UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

/// Expects that `call` throws a UserError whose one line holds `part`.
template <typename Call>
void expect_user_error(Call&& call, std::string_view part) {
  EXPECT_THAT(user_error_of(call), testing::HasSubstr(std::string(part)));
}

}  // namespace plenum::test
