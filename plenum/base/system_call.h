#pragma once

#include <cerrno>
#include <system_error>
#include <utility>

#include "plenum/base/check.h"

namespace plenum::base {

/// Throws UserError unless a system call succeeded: the message, ": " and the reason that errno gives. It is
/// read in here because the order in which arguments are evaluated is open: beside the call it might be
/// older.
template <typename... Args>
void require_call(bool succeeded, fmt::format_string<Args...> format, Args&&... args) {
  if (succeeded) return;
  const std::error_code error(errno, std::generic_category());
  fail("{}: {}", fmt::format(format, std::forward<Args>(args)...), error.message());
}

}  // namespace plenum::base
