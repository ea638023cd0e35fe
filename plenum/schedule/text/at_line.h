#pragma once

#include <cstddef>
#include <string_view>

#include "plenum/base/check.h"

namespace plenum::schedule {

/// Calls `read()`. A UserError that it throws gets the place in front, `source:line: `, and is cut where it
/// quotes very long words.
template <typename Read>
void at_line(std::string_view source, std::size_t line, Read read) {
  constexpr std::size_t kLongestMessage = 400;
  try {
    read();
  } catch (const base::UserError& error) {
    const std::string_view message = error.what();
    base::fail("{}:{}: {}{}", source, line, message.substr(0, kLongestMessage),
               message.size() > kLongestMessage ? "..." : "");
  }
}

}  // namespace plenum::schedule
