#include "plenum/cli/command_line.h"

int main(int argc, char** argv) {
  return plenum::cli::run_command_line(argc, argv);
}
