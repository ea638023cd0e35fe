#include "plenum/io/json_lines.h"

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::io {
namespace {

using test::expect_user_error;

TEST(JsonTextField, ReadsTheFieldAndUndoesEscapes) {
  JsonTextField field("text");
  EXPECT_EQ(field.read(R"({"id": 1, "text": "a\nb \u00e4 \ud83d\ude00", "more": [1, {"text": 2}]})"),
            "a\nb \xC3\xA4 \xF0\x9F\x98\x80");
  EXPECT_EQ(field.read(R"({"text": null})"), "");
  EXPECT_EQ(field.read("{\"text\": \"x\"}\r"), "x");
  EXPECT_EQ(field.read(R"({"text": "with \u0000 inside"})"), std::string_view("with \0 inside", 13));
}

TEST(JsonTextField, KeepsWorkingAfterARecordThatItRefused) {
  JsonTextField field("text");
  expect_user_error([&] { field.read("{"); }, "not valid JSON");
  EXPECT_EQ(field.read(R"({"text": "x"})"), "x");
}

TEST(JsonTextField, RefusesWhatHoldsNoText) {
  JsonTextField field("text");
  expect_user_error([&] { field.read("[1, 2]"); }, "not a JSON object");
  expect_user_error([&] { field.read("{\"text\": \"a\"} {\"text\": \"b\"}"); }, "not valid JSON");
  expect_user_error([&] { field.read("{\"text\": \"\xFF\"}"); }, "not valid JSON");
  expect_user_error([&] { field.read(R"({"text": 3})"); }, "is not a string");
  expect_user_error([&] { field.read(R"({"text": "a", "n": 1, "t\u0065xt": "b"})"); },
                    "has the field 'text' twice; keep one of them");
  EXPECT_EQ(field.read(R"({"n": 1, "text": "a", "n": {"text": "b"}})"), "a");
  expect_user_error([&] { field.read(R"({"body": "x", "id": 3})"); },
                    "no field 'text'; choose one of body, id by --text-field");
}

TEST(ReplaceLoneSurrogates, LeavesPairsAndEscapedBackslashes) {
  const auto replaced = [](std::string record, std::size_t expected_count) {
    EXPECT_EQ(replace_lone_surrogates(record), expected_count) << record;
    return record;
  };
  EXPECT_EQ(replaced(R"("\\ud800 \\\n \\u00e4 \\ud83d\\ude00")", 0),
            R"("\\ud800 \\\n \\u00e4 \\ud83d\\ude00")");
  EXPECT_EQ(replaced(R"("\ud83d\ude00 \u00e4")", 0), R"("\ud83d\ude00 \u00e4")");
  EXPECT_EQ(replaced(R"("\ud800\ud83d\ude00\udc00\uD800\u0041")", 3),
            R"("\ufffd\ud83d\ude00\ufffd\ufffd\u0041")");
  EXPECT_EQ(replaced(R"("\ud8)", 0), R"("\ud8)");
  EXPECT_EQ(replaced("\\\\\\", 0), "\\\\\\");
}

}  // namespace
}  // namespace plenum::io
