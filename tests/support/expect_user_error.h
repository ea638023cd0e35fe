#pragma once

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::test {

/// Expects that `call` throws a UserError of one line that holds `part`.
template <typename Call>
void expect_user_error(Call call, std::string_view part) {
  try {
    call();
    ADD_FAILURE() << "no error, but expected one with: " << part;
  } catch (const base::UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(std::string(part)));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

}  // namespace plenum::test
