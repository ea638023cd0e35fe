#include "plenum/data/text/text_parser.h"

#include "tests/fuzz/fuzz.h"

namespace {

/// Counts what it is given.
class CountingSink final : public plenum::data::TextSink {
 public:
  void sentence(std::string_view text, plenum::data::SentencePart) override { bytes += text.size(); }
  void end_document() override { ++documents; }

  std::size_t bytes = 0;
  std::size_t documents = 0;
};

}  // namespace

// The first byte chooses format, compression and block size; the rest is the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using plenum::data::TextFormat;
  if (size == 0) return 0;
  static constexpr TextFormat kFormats[] = {TextFormat::Lines, TextFormat::JsonLines, TextFormat::Csv,
                                            TextFormat::Tsv};
  static const std::string kSuffixes[] = {"", ".gz", ".zst"};
  const std::string_view bytes = plenum::fuzz::as_text(data + 1, size - 1);
  plenum::fuzz::parse_or_refuse([&] {
    plenum::fuzz::InputFile file(bytes);
    const std::vector<plenum::data::SourceFile> files = {
        {file.path_with(kSuffixes[data[0] / 4 % 3]), kFormats[data[0] % 4], bytes.size(), 0}};
    plenum::data::TextOptions options;
    options.block_bytes = 1 + data[0] / 16 * 7;
    options.longest_record_bytes = 512;
    options.longest_word_bytes = 128;
    static constexpr plenum::data::DocumentRule kRules[] = {plenum::data::DocumentRule::BlankLine,
                                                            plenum::data::DocumentRule::Line,
                                                            plenum::data::DocumentRule::File};
    options.documents = kRules[data[0] % 3];
    options.invalid = plenum::data::InvalidTextRule::Replace;  // no byte ends the search at once
    plenum::data::TextReader reader(files, options);
    plenum::data::TextParser parser(files, options);
    CountingSink sink;
    for (plenum::data::TextBlock block; reader.next(block);) parser.parse(block, sink);
  });
  return 0;
}
