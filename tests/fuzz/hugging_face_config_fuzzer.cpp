#include "plenum/model/hugging_face_config.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plenum::model;
  plenum::fuzz::parse_or_refuse([&] {
    const auto config = parse_hugging_face_config(plenum::fuzz::as_text(data, size), "fuzz");
    if (parse_hugging_face_config(print_hugging_face_config(config), "fuzz") != config) __builtin_trap();
  });
  return 0;
}
