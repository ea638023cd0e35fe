#include "plenum/packing/histogram_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/base/philox.h"

#include "tests/support/expect_user_error.h"

namespace plenum::packing {
namespace {

using Form = HistogramText::Form;
using Counts = std::vector<std::uint64_t>;

Counts read(Form form, std::string_view text) {
  HistogramText reader(form, "f.txt");
  reader.feed(text);
  return reader.finish().counts;
}

std::string error_of(Form form, std::string_view text) {
  return test::user_error_of([&] { read(form, text); });
}

TEST(HistogramText, ReadsACountPerLine) {
  EXPECT_EQ(read(Form::Histogram, "0\n5\n0\n7\n"), (Counts{0, 0, 5, 0, 7}));
  EXPECT_EQ(read(Form::Histogram, "3"), (Counts{0, 3}));
  EXPECT_EQ(read(Form::Histogram, "3\r\n4\r\n\r\n\n"), (Counts{0, 3, 4}));
}

TEST(HistogramText, ReadsPairsInAnyOrder) {
  EXPECT_EQ(read(Form::Histogram, "3 7\n1 2\n"), (Counts{0, 2, 0, 7}));
  EXPECT_EQ(read(Form::Histogram, "3,7\n1 , 2\n"), (Counts{0, 2, 0, 7}));
  EXPECT_EQ(read(Form::Histogram, "3\t7"), (Counts{0, 0, 0, 7}));
}

TEST(HistogramText, ReadsALengthPerLine) {
  EXPECT_EQ(read(Form::Lengths, "3\n1\n3\n"), (Counts{0, 1, 0, 2}));
}

TEST(HistogramText, DoesNotDependOnHowTheTextArrives) {
  const std::string text = "12 34\r\n5,6\n7\t890\n\n";
  const Counts whole = read(Form::Histogram, text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    for (std::size_t second = cut; second <= text.size(); ++second) {
      HistogramText reader(Form::Histogram, "f");
      reader.feed(text.substr(0, cut));
      reader.feed(text.substr(cut, second - cut));
      reader.feed(text.substr(second));
      ASSERT_EQ(reader.finish().counts, whole);
    }
  }
}

TEST(HistogramText, NamesTheLineOfBadInput) {
  using testing::HasSubstr;
  using testing::StartsWith;
  EXPECT_THAT(error_of(Form::Histogram, ""), HasSubstr("f.txt: the file is empty"));
  EXPECT_THAT(error_of(Form::Histogram, "0\n0\n"), HasSubstr("no sequences"));
  EXPECT_THAT(error_of(Form::Histogram, "\n\n"), HasSubstr("no sequences"));
  EXPECT_THAT(error_of(Form::Histogram, "1\n-2\n"),
              StartsWith("f.txt:2: a number of sequences must not be negative"));
  EXPECT_THAT(error_of(Form::Histogram, "1\n\n2\n"), StartsWith("f.txt:2: "));
  EXPECT_THAT(error_of(Form::Histogram, "1\ntwo\n"),
              HasSubstr("f.txt:2: a number of sequences must be a whole number, not 'two'"));
  EXPECT_THAT(error_of(Form::Histogram, "1.5\n"), HasSubstr("f.txt:1"));
  EXPECT_THAT(error_of(Form::Histogram, "1e3\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(Form::Histogram, "-\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(Form::Histogram, "+1\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of(Form::Histogram, std::string_view("1\0\n", 3)), HasSubstr("'1\\x00'"));
  EXPECT_THAT(error_of(Form::Histogram, "1\n2 3\n"), HasSubstr("f.txt:2"));
  EXPECT_THAT(error_of(Form::Histogram, "1 2\n3\n"),
              HasSubstr("f.txt:2: a line must hold a length and a number"));
  EXPECT_THAT(error_of(Form::Histogram, "1 2 3\n"), HasSubstr("f.txt:1"));
  EXPECT_THAT(error_of(Form::Histogram, "1 2\n1 3\n"), HasSubstr("f.txt:2: length 1 was given before"));
  EXPECT_THAT(error_of(Form::Histogram, "length,count\n1,2\n"), HasSubstr("'length'"));
  EXPECT_THAT(error_of(Form::Lengths, "4\n0\n"),
              HasSubstr("f.txt:2: a sequence must have at least one token"));
  EXPECT_THAT(error_of(Form::Lengths, "4\n-3\n"), HasSubstr("f.txt:2: a length must not be negative"));
  EXPECT_THAT(error_of(Form::Lengths, "16777217\n"), HasSubstr("above"));
  EXPECT_THAT(error_of(Form::Lengths, std::string(1000, '1')), HasSubstr("f.txt:1"));
  EXPECT_THAT(error_of(Form::Lengths, "\x1b[31mred\n"), HasSubstr("'\\x1b[31mred'"));
}

TEST(HistogramText, RefusesWhatCannotBeCounted) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of(Form::Histogram, "9223372036854775808\n"),
              HasSubstr("f.txt:1: there are more than 2^62"));
  EXPECT_THAT(error_of(Form::Histogram, "18446744073709551616\n"),
              HasSubstr("f.txt:1: a number of sequences is too large"));
  EXPECT_THAT(error_of(Form::Histogram, "4611686018427387904\n1\n"),
              HasSubstr("f.txt:2: there are more than 2^62"));
  EXPECT_THAT(error_of(Form::Histogram, "1\n18446744073709551615\n"), HasSubstr("more than 2^62"));
  EXPECT_EQ(read(Form::Histogram, "4611686018427387904\n"), (Counts{0, 4611686018427387904u}));
}

// Random text out of the characters that matter either reads or is refused with a place; it never breaks.
TEST(HistogramText, SurvivesRandomText) {
  const base::RandomFunction random(9, base::Purpose::Holdout);
  constexpr std::string_view kCharacters("0123456789\n\n\n\n\n\r,, \t-+.ex\0\xff", 27);
  int num_read = 0;
  for (std::uint64_t index = 0; index < 4000; ++index) {
    std::string text;
    const std::uint64_t size = base::to_range(random(index, 0), 24);
    // Every other text has digits and line ends only, so that many can be read.
    const std::uint64_t choices = index % 2 == 0 ? kCharacters.size() : 15;
    for (std::uint32_t i = 1; i <= size; ++i) text += kCharacters[base::to_range(random(index, i), choices)];
    const std::string error = error_of(index % 3 == 0 ? Form::Lengths : Form::Histogram, text);
    num_read += error == "no error";
    ASSERT_TRUE(error == "no error" || error.starts_with("f.txt:")) << error;
  }
  EXPECT_GT(num_read, 100);
}

}  // namespace
}  // namespace plenum::packing
