#include <vector>

#include "plenum/io/safetensors.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plenum::fuzz::InputFile input(plenum::fuzz::as_text(data, size));
  plenum::fuzz::parse_or_refuse([&] {
    const plenum::io::SafetensorsFile file(input.path());
    for (const plenum::io::SafetensorsTensor& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) __builtin_trap();
      plenum::fuzz::parse_or_refuse([&] {
        std::vector<float> values(tensor.num_elements);
        file.read(tensor, values);
      });
    }
  });
  return 0;
}
