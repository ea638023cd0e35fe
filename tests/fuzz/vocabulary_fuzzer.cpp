#include "plenum/data/tokenizer/tokenizer_files.h"

#include "tests/fuzz/fuzz.h"

// vocab.txt; what is accepted must survive being written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plenum::fuzz::parse_or_refuse([&] {
    const auto vocabulary = plenum::data::parse_vocab_txt(plenum::fuzz::as_text(data, size), "fuzz");
    const auto again = plenum::data::parse_vocab_txt(plenum::data::print_vocab_txt(vocabulary), "fuzz");
    if (again.tokens() != vocabulary.tokens()) __builtin_trap();
  });
  return 0;
}
