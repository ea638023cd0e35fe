#include <filesystem>

#include <gmock/gmock.h>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace plenum::architecture {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PublishedResults : public testing::Test {
 protected:
  void SetUp() override {
    if (test::run_command("python3 --version").exit_code != 0) GTEST_SKIP() << "python3 is not here";
  }
  /// Of bench/reproduce. Leaves nothing in the sources.
  static test::ProgramResult run(const std::string& arguments) {
    return test::run_command("PYTHONDONTWRITEBYTECODE=1 python3 '" PLENUM_SOURCE_DIR "/bench/reproduce' " +
                             arguments);
  }
};

// And every figure that the page quotes stands where it says.
TEST_F(PublishedResults, PageIsWhatStoredResultsRenderTo) {
  const test::ProgramResult checked = run("--check");
  EXPECT_EQ(checked.exit_code, 0) << checked.output << checked.errors;
}

TEST_F(PublishedResults, RowThatFailsSaysSo) {
  const test::TemporaryDirectory directory;
  directory.write("build/plenum",
                  "#!/bin/sh\n"
                  "[ \"$1\" = doctor ] || { echo 'no lengths today' >&2; exit 2; }\n"
                  "echo '{\"parts\": [{\"name\": \"CPU\", \"used\": true, \"detail\": \"An abacus\"},"
                  " {\"name\": \"cores\", \"used\": true, \"detail\": \"3 usable\"},"
                  " {\"name\": \"GPU\", \"used\": false, \"detail\": \"\"}]}'\n");
  std::filesystem::permissions(directory / "build/plenum", std::filesystem::perms::owner_all);
  std::filesystem::create_directory(directory / "out");
  const test::ProgramResult measured = run("--rows padding-cola lamb --build '" + (directory / "build") +
                                           "' --output '" + (directory / "out") + "'");
  EXPECT_EQ(measured.exit_code, 1);
  EXPECT_THAT(measured.errors, AllOf(HasSubstr("lamb: skipped, there is no GPU"),
                                     HasSubstr("failed: plenum: exit code 2: no lengths today")));
  const std::string page = test::run_command("cat '" + directory.path() + "/out/README.md'").output;
  EXPECT_THAT(page, HasSubstr("| failed: plenum: exit code 2: no lengths today | An abacus, 3 cores, "));
}

}  // namespace
}  // namespace plenum::architecture
