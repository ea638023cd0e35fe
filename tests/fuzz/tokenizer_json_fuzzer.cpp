#include "plenum/data/tokenizer/tokenizer_files.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plenum::fuzz::parse_or_refuse([&] {
    const auto tokenizer = plenum::data::parse_tokenizer_json(plenum::fuzz::as_text(data, size), "fuzz");
    plenum::data::Encoder encoder(tokenizer);
    std::vector<plenum::data::TokenId> ids;
    encoder.encode("The [MASK] caf\xc3\xa9.", ids);
  });
  return 0;
}
