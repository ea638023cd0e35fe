#include "tests/cli/program.h"

#include <cstdlib>

#include <fmt/format.h>
#include <sys/wait.h>

#include "plenum/io/file.h"

#include "tests/io/temporary_directory.h"

namespace plenum::cli {

ProgramResult run_program(const std::string& arguments, const std::string& input) {
  const io::TemporaryDirectory directory;
  io::write_file(directory.file("in"), input);
  const std::string command = fmt::format("{} {} <{} >{} 2>{}", PLENUM_BINARY, arguments,
                                          directory.file("in"), directory.file("out"), directory.file("err"));
  const int status = std::system(command.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .output = io::read_file(directory.file("out")),
          .errors = io::read_file(directory.file("err"))};
}

}  // namespace plenum::cli
