#include <fmt/format.h>

#include "plenum/base/build_info.h"
#include "plenum/cli/command.h"

namespace plenum::cli {
namespace {

class DoctorCommand final : public Command {
 public:
  std::string name() const override { return "doctor"; }
  std::string summary() const override { return "What this machine and this build can do, and why not more"; }
  std::vector<base::OptionTable> tables() override { return {}; }
  int run() override {
    fmt::print("plenum {}\n", base::build_info().version);
    return 0;
  }
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace plenum::cli
