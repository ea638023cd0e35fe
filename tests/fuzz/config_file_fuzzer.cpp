#include "plenum/io/config_file.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bool flag = false;
  std::int64_t length = 1;
  double rate = 0;
  std::vector<std::string> inputs;
  plenum::base::OptionTable table("pack");
  table.add("flag", flag, "A flag");
  table.add("max-length", length, 1, 8192, "A length");
  table.add_fraction("rate", rate, "A rate");
  table.add("inputs", inputs, "FILE", "Files");
  plenum::fuzz::parse_or_refuse([&] {
    const plenum::fuzz::InputFile file(plenum::fuzz::as_text(data, size));
    plenum::io::set_options(plenum::io::read_config_file(file.path(), {table}), {table});
  });
  return 0;
}
