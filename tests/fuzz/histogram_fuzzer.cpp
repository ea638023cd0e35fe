#include "plenum/packing/histogram_text.h"

#include "tests/fuzz/fuzz.h"

// The first byte chooses the form and how the text is cut into pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using plenum::packing::HistogramText;
  if (size == 0) return 0;
  const auto form = data[0] % 2 == 0 ? HistogramText::Form::Histogram : HistogramText::Form::Lengths;
  const std::size_t piece = 1 + data[0] / 2;
  const std::string_view text = plenum::fuzz::as_text(data + 1, size - 1);
  plenum::fuzz::parse_or_refuse([&] {
    HistogramText reader(form, "fuzz");
    for (std::size_t start = 0; start < text.size(); start += piece) reader.feed(text.substr(start, piece));
    reader.finish();
  });
  return 0;
}
