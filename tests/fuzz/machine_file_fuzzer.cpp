#include "plenum/calibrate/machine_file.h"

#include "tests/fuzz/fuzz.h"

/// What reads as a machine must do so again as it is printed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plenum::fuzz::InputFile file(plenum::fuzz::as_text(data, size));
  plenum::fuzz::parse_or_refuse(
      [&] { plenum::calibrate::read_cluster(file.path(), {.ranks = 3, .threads = 2}); });
  plenum::fuzz::parse_or_refuse([&] {
    const std::string printed =
        plenum::calibrate::print_machine(plenum::calibrate::read_machine(file.path()));
    const plenum::fuzz::InputFile again(printed);
    try {
      plenum::calibrate::read_machine(again.path());
    } catch (const plenum::base::UserError&) {
      __builtin_trap();
    }
  });
  return 0;
}
