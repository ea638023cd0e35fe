#pragma once

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace plenum::base {

/// Something the user can mend: configuration, files, hardware. One line that says what to do; exit code 2.
class UserError : public std::runtime_error {
 public:
  /// Control characters, which a message may quote from a broken file, are written as escapes: it stays one
  /// line.
  explicit UserError(std::string_view message);
};

/// A bug in Plenum. Carries the place that noticed it; exit code 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A truth value together with the place in the source that computed it.
/// Built from exactly `bool`, so `check("text")` and `check(pointer)` do not compile.
class Condition {
 public:
  template <std::same_as<bool> Bool>
  constexpr Condition(Bool value, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : value_(value), file_(file), line_(line) {}

  constexpr bool value() const { return value_; }
  constexpr const char* file() const { return file_; }
  constexpr int line() const { return line_; }

 private:
  bool value_;
  const char* file_;
  int line_;
};

[[noreturn]] void throw_internal_error(const Condition& condition, const std::string& message);

/// Throws InternalError with the caller's file and line unless `condition` holds. Static text first, values
/// last: `check(a == b, "rows must match: a={} b={}", a, b)`.
template <typename... Args>
void check(Condition condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition.value()) [[unlikely]] {
    throw_internal_error(condition, fmt::format(format, std::forward<Args>(args)...));
  }
}

/// Throws UserError.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws UserError unless `condition` holds. The message says what to do.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    fail(format, std::forward<Args>(args)...);
  }
}

}  // namespace plenum::base
