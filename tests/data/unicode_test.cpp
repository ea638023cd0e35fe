#include "plenum/data/text/unicode.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "plenum/data/text/utf8.h"
#include "plenum/data/tokenizer/normalizer.h"
#include "plenum/data/tokenizer/word_splitter.h"

#include "tests/data/golden.h"

namespace plenum::data {
namespace {

constexpr char32_t kBlock = 0x1000;

bool is_surrogate(char32_t code_point) {
  return code_point >= 0xD800 && code_point < 0xE000;
}

std::string text_of(char32_t code_point) {
  char bytes[4];
  return std::string(bytes, encode_utf8(code_point, bytes));
}

std::uint32_t add_words(std::uint32_t checksum, WordSplitter& splitter, const std::string& text) {
  WordCollector collector;
  splitter.split(text, collector);
  std::string joined;
  for (std::size_t i = 0; i < collector.words.size(); ++i)
    joined += (i == 0 ? "" : "\n") + collector.words[i];
  joined += "\n\n";
  return static_cast<std::uint32_t>(
      crc32(checksum, reinterpret_cast<const Bytef*>(joined.data()), static_cast<uInt>(joined.size())));
}

// The words of each code point alone between letters, and between two marks that canonical ordering would
// swap, are those of Hugging Face: tools/make_tokenizer_golden.py.
TEST(EveryCodePoint, GivesTheWordsOfHuggingFace) {
  const nlohmann::json golden = read_golden("unicode_checksums.json");
  ASSERT_GE(golden.at("settings").size(), 6u);
  for (const nlohmann::json& setting : golden.at("settings")) {
    const Normalizer normalizer(golden_rules(setting.at("rules")));
    WordSplitter splitter(normalizer, 100);
    const auto checksums = setting.at("checksums").get<std::vector<std::uint32_t>>();
    ASSERT_EQ(checksums.size(), kNumCodePoints / kBlock);
    for (char32_t first = 0; first < kNumCodePoints; first += kBlock) {
      std::uint32_t checksum = 0;
      for (char32_t code_point = first; code_point < first + kBlock; ++code_point) {
        if (is_surrogate(code_point)) continue;
        const std::string character = text_of(code_point);
        checksum = add_words(checksum, splitter, "a" + character + "B");
        checksum = add_words(checksum, splitter, "a\u302e" + character + "\U0001d165b");
      }
      EXPECT_EQ(checksum, checksums[first / kBlock])
          << std::hex << "from U+" << static_cast<std::uint32_t>(first) << " under " << setting.at("rules");
    }
  }
}

// The encoder's buffer relies on it.
TEST(EveryCodePoint, BecomesAtMostAsManyCharactersAsItHasBytes) {
  for (char32_t code_point = 0; code_point < kNumCodePoints; ++code_point) {
    if (is_surrogate(code_point)) continue;
    std::size_t num_kept = 0;
    for (const char32_t part : decompose(code_point)) {
      if (!is_nonspacing_mark(part)) num_kept += lowercase(part).size;
    }
    ASSERT_LE(num_kept, text_of(code_point).size()) << std::hex << static_cast<std::uint32_t>(code_point);
  }
}

TEST(UnicodeProperties, FollowHuggingFaceWhereVersionsDiffer) {
  EXPECT_EQ(lowercase(0x0130).size, 2u);            // full mapping: i and a dot above
  EXPECT_EQ(lowercase(0x1C89).values[0], 0x1C8Au);  // Unicode 16
  EXPECT_EQ(decompose(0x11938).size, 1u);           // Unicode 13 decomposes it
  EXPECT_FALSE(is_control(0x0378));                 // unassigned: stays
  EXPECT_TRUE(is_control(0xE000));                  // private use: dropped
  EXPECT_TRUE(is_control(0x000B));                  // dropped although it is white space
  EXPECT_FALSE(is_cjk(0x2B820));                    // the gap in the list of blocks
  EXPECT_TRUE(is_cjk(0x2B920));
}

TEST(DecodeUtf8, ReplacesEachMaximalPart) {
  const auto lengths = [](std::string_view text) {
    std::vector<std::pair<char32_t, std::uint32_t>> found;
    for (const char* at = text.data(); at != text.data() + text.size();) {
      const DecodedCharacter character = decode_utf8(at, text.data() + text.size());
      found.emplace_back(character.code_point, character.length);
      at += character.length;
    }
    return found;
  };
  using Found = std::vector<std::pair<char32_t, std::uint32_t>>;
  // Table 3-8 of the Unicode standard.
  EXPECT_EQ(lengths("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), (Found{{0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {0xFFFD, 1},
                                                                    {'A', 1}}));
  // Table 3-11: truncated sequences.
  EXPECT_EQ(lengths("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            (Found{{0xFFFD, 2}, {0xFFFD, 1}, {0xFFFD, 3}, {0xFFFD, 2}, {'A', 1}}));
  EXPECT_EQ(lengths("\xED\xA0\x80"), (Found{{0xFFFD, 1}, {0xFFFD, 1}, {0xFFFD, 1}}));
  EXPECT_EQ(lengths("\xF4\x8F\xBF\xBF\xF4\x90"), (Found{{0x10FFFF, 4}, {0xFFFD, 1}, {0xFFFD, 1}}));
}

TEST(WideEncoding, IsTakenFromTheMarkOrTheZeros) {
  using namespace std::string_view_literals;
  EXPECT_EQ(wide_encoding("\xFF\xFE"sv), "utf-16");
  EXPECT_EQ(wide_encoding("\xFF\xFE\0\0"sv), "utf-32");
  EXPECT_EQ(wide_encoding("t\0e\0x\0t\0"sv), "utf-16le");
  EXPECT_EQ(wide_encoding("\0t\0e\0x\0t"sv), "utf-16be");
  EXPECT_EQ(wide_encoding("\0\0\0\0\0\0\0\0"sv), "");
  EXPECT_EQ(wide_encoding("plain text with a \0 in it"sv), "");
  EXPECT_EQ(wide_encoding(""), "");
  EXPECT_EQ(conversion_command("\xFE\xFF\0a"sv), "iconv -f utf-16 -t utf-8");
  EXPECT_EQ(conversion_command("caf\xE9"), "iconv -f latin1 -t utf-8");
}

TEST(IsUtf8, AcceptsTheReplacementCharacterItself) {
  EXPECT_TRUE(is_utf8("a\u00e9\u4e2d\U0001f600\ufffd"));
  EXPECT_FALSE(is_utf8("a\xFF"));
  EXPECT_FALSE(is_utf8("a\xE4\xB8"));
}

}  // namespace
}  // namespace plenum::data
