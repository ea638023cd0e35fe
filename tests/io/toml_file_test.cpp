#include "plenum/io/toml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class TomlFile : public ::testing::Test {
 protected:
  TomlValue read(const std::string& text) {
    const std::string path = directory_ / "file.toml";
    write_file(path, text);
    return read_toml_file(path);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(TomlFile, KeepsValuesOfAllKindsAndTheirLines) {
  const TomlValue root =
      read("a = 1\nb = 2.5\nc = \"x\"\nd = true\n[e]\nf = [1, [2]]\ng = 2026-11-19\n[[h]]\ni = 1\n[[h]]\n");
  const TomlTable table(root, "a file", {"a", "b", "c", "d", "e", "h"});
  EXPECT_EQ(table.number("a", 0, 2), 1);
  EXPECT_EQ(table.number("b", 0, 3), 2.5);
  EXPECT_EQ(table.text("c"), "x");
  EXPECT_TRUE(table.require("d").flag);
  const TomlTable inner(table.require("e"), "[e]", {"f", "g"});
  EXPECT_EQ(inner.list("f").at(1).list.at(0).number, 2);
  EXPECT_THAT(inner.list("f").at(1).place, EndsWith("file.toml:6"));
  EXPECT_EQ(inner.require("g").kind, TomlValue::Kind::Date);
  EXPECT_EQ(table.list("h").size(), 2);
}

TEST_F(TomlFile, TakesWhatStandsInForAbsentKeys) {
  const TomlValue root = read("");
  const TomlTable table(root, "a file", {"a"});
  EXPECT_EQ(table.number("a", 0, 1, 0.5), 0.5);
  EXPECT_EQ(table.count("a", 1, 9, 3), 3);
  EXPECT_EQ(table.text("a", "b"), "b");
  EXPECT_EQ(table.optional_number("a", 0, 1), std::nullopt);
  EXPECT_TRUE(table.list("a").empty());
  EXPECT_THAT(test::user_error_of([&] { table.number("a", 0, 1); }), HasSubstr("a file lacks the key 'a'"));
}

TEST_F(TomlFile, RefusesByLineAndKey) {
  const TomlValue root = read("number = 3\n\nwhole = 1.5\ntext = 7\n");
  const TomlTable table(root, "a file", {"number", "whole", "text"});
  EXPECT_THAT(test::user_error_of([&] { table.number("number", 0, 2); }),
              EndsWith("file.toml:1: number must lie between 0 and 2: 3"));
  EXPECT_THAT(test::user_error_of([&] { table.count("whole", 0, 2); }),
              EndsWith("file.toml:3: whole must be a whole number: 1.5"));
  EXPECT_THAT(test::user_error_of([&] { table.text("text"); }),
              EndsWith("file.toml:4: text must be a text in quotes"));
  EXPECT_THAT(test::user_error_of([&] { table.list("text"); }), EndsWith("file.toml:4: text must be a list"));
  EXPECT_THAT(test::user_error_of([&] {
                TomlTable(root, "[m]", {"numbers", "whole", "text"});
              }),
              EndsWith("file.toml:1: unknown key 'number' in [m]; did you mean 'numbers'?"));
  EXPECT_THAT(test::user_error_of([&] { read("a = \n"); }), HasSubstr("file.toml:1: "));
}

}  // namespace
}  // namespace plenum::io
