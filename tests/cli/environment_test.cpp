#include "plenum/cli/environment.h"

#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace plenum::cli {
namespace {

/// Sets a variable of the environment for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Environment, WelcomesColorUnlessTheUserOrTheTerminalDoesNot) {
  const Variable no_color("NO_COLOR", "");
  const Variable terminal("TERM", "xterm-256color");
  EXPECT_TRUE(color_is_welcome());
  {
    const Variable dumb("TERM", "dumb");
    EXPECT_FALSE(color_is_welcome());
  }
  const Variable no_color_please("NO_COLOR", "1");
  EXPECT_FALSE(color_is_welcome());
}

}  // namespace
}  // namespace plenum::cli
