#include <algorithm>

#include "plenum/data/corpus/dataset.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_directory.h"

namespace {

/// Writes the files whose bytes the input is made of, one after another; each begins with its size in two
/// bytes.
void write_parts(std::string_view bytes, const plenum::test::TemporaryDirectory& directory) {
  for (const char* name : {"dataset.json", "train.idx", "train.bin", "train.sequences"}) {
    const std::size_t size =
        bytes.size() < 2 ? 0
                         : static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(std::min<std::size_t>(2, bytes.size()));
    directory.write(name, bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plenum::data;
  static const plenum::test::TemporaryDirectory directory;
  write_parts(plenum::fuzz::as_text(data, size), directory);
  plenum::fuzz::parse_or_refuse([&] { read_dataset_description(directory.path()); });
  plenum::fuzz::parse_or_refuse([&] {
    const IndexedTokens tokens(directory / "train.bin", directory / "train.idx");
    std::vector<TokenId> ids;
    if (tokens.num_tokens() > 0) tokens.append_tokens(0, tokens.num_tokens(), ids);
    for (std::uint64_t i = 0; i < tokens.num_sentences(); ++i) static_cast<void>(tokens.first_token(i));
  });
  plenum::fuzz::parse_or_refuse([&] {
    const SequenceIndex sequences(directory / "train.sequences");
    sequences.verify();
    for (std::uint64_t id = 0; id < sequences.size(); ++id) static_cast<void>(sequences[id]);
  });
  return 0;
}
