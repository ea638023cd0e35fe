#include "plenum/io/csv.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::io {
namespace {

using Records = std::vector<std::vector<std::string>>;

Records parse(std::string_view text, char delimiter = ',') {
  CsvRecords records(text, delimiter);
  Records all;
  std::vector<std::string> fields;
  while (records.next(fields)) all.push_back(fields);
  return all;
}

TEST(CsvRecords, SplitsFieldsAndRecords) {
  EXPECT_EQ(parse("a,b\nc,d\n"), (Records{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(parse("a,b\r\nc,d"), (Records{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(parse("a\tb,c\n", '\t'), (Records{{"a", "b,c"}}));
  EXPECT_EQ(parse(",\n"), (Records{{"", ""}}));
  EXPECT_EQ(parse(""), Records{});
  EXPECT_EQ(parse("\n\r\n\n"), Records{});
}

TEST(CsvRecords, ReadsQuotedFields) {
  EXPECT_EQ(parse("\"a,b\",\"c\nd\"\r\n"), (Records{{"a,b", "c\nd"}}));
  EXPECT_EQ(parse("\"say \"\"hi\"\"\",x"), (Records{{"say \"hi\"", "x"}}));
  EXPECT_EQ(parse("\"\",\"\"\"\"\n"), (Records{{"", "\""}}));
  EXPECT_EQ(parse("\"a\"\r"), (Records{{"a"}}));
}

TEST(CsvRecords, TakesAQuoteInsideAnUnquotedFieldAsText) {
  EXPECT_EQ(parse("5\" disk,a\"\"b\nx,y"), (Records{{"5\" disk", "a\"\"b"}, {"x", "y"}}));
}

TEST(CsvRecords, RefusesBadQuotes) {
  test::expect_user_error([] { parse("\"never closed\nx"); }, "not closed");
  test::expect_user_error([] { parse("\"a\"b,c"); }, "goes on after its closing quote");
}

TEST(CsvRecords, CountsTheLinesBeforeARecord) {
  CsvRecords records("a\n\"b\nb\"\n\nc\n", ',');
  std::vector<std::string> fields;
  std::vector<std::uint64_t> lines;
  while (records.next(fields)) lines.push_back(records.lines_before());
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{0, 1, 4}));
}

std::string random_table(std::mt19937& random) {
  constexpr std::string_view kLetters = "ab\",\n\r \t";
  std::string text;
  const auto pick = [&](std::size_t bound) { return random() % bound; };
  for (std::size_t record = 0; record < 1 + pick(6); ++record) {
    for (std::size_t field = 0; field < 1 + pick(3); ++field) {
      if (field > 0) text += ',';
      const bool quoted = pick(2) == 0;
      if (quoted) text += '"';
      const std::size_t begin = text.size();
      for (std::size_t i = 0; i < pick(6); ++i) {
        const char letter = kLetters[pick(kLetters.size())];
        if (quoted) {
          text += letter == '"' ? "\"\"" : std::string(1, letter);
        } else if (letter != ',' && letter != '\n' && letter != '\r' &&
                   (letter != '"' || text.size() > begin)) {
          text += letter;
        }
      }
      if (quoted) text += '"';
    }
    text += '\n';
  }
  return text;
}

TEST(CsvBoundary, CutsOnlyBetweenRecordsWhateverArrivesWhen) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_table(random);
    const Records expected = parse(text);
    const std::size_t step = 1 + random() % 9;
    CsvBoundary boundary(',');
    Records found;
    std::string pending;
    for (std::size_t at = 0; at < text.size(); at += step) {
      pending += text.substr(at, step);
      boundary.scan(pending);
      if (boundary.last_end() == 0) continue;
      ASSERT_LE(boundary.first_end(), boundary.last_end());
      for (auto& record : parse(pending.substr(0, boundary.last_end()))) found.push_back(record);
      pending.erase(0, boundary.last_end());
      boundary.clear();
    }
    ASSERT_EQ(pending, "") << text;
    ASSERT_EQ(found, expected) << text;
  }
}

}  // namespace
}  // namespace plenum::io
