#include "plenum/io/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::io {
namespace {

using ::testing::HasSubstr;

/// A component with one option of each kind.
struct Settings {
  bool flag = false;
  std::int64_t max_length = 512;
  double rate = 0.15;
  std::string name = "a \"quoted\" name";
  std::vector<std::string> inputs = {"x", "y"};
  std::optional<std::int64_t> depth;

  base::OptionTable table() {
    base::OptionTable options("pack");
    options.add("flag", flag, "A flag");
    options.add("max-length", max_length, 1, 8192, "A length").former_name = "capacity";
    options.add("rate", rate, 0, 1, "A rate");
    options.add("name", name, "NAME", "A name");
    options.add("inputs", inputs, "FILE", "Some files");
    options.add("depth", depth, 1, 100, "A depth");
    return options;
  }
};

class ConfigFile : public ::testing::Test {
 protected:
  std::vector<ConfigEntry> read(const std::string& text) {
    write_file(path_, text);
    return read_config_file(path_, {settings_.table()});
  }

  std::string error_of(const std::string& text) {
    return test::user_error_of([&] { read(text); });
  }

  Settings settings_;
  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "run.toml";
};

TEST_F(ConfigFile, NamesFileLineAndTheNearestKnownKey) {
  EXPECT_THAT(
      error_of("[pack]\nflag = true\nmax-lenght = 3\n"),
      HasSubstr("run.toml:3: unknown key 'max-lenght' in section 'pack'; did you mean 'max-length'?"));
  EXPECT_THAT(error_of("\n[pak]\nflag = true\n"),
              HasSubstr("run.toml:2: unknown section 'pak'; did you mean 'pack'?"));
  EXPECT_THAT(error_of("flag = true\n"), HasSubstr("run.toml:1: key 'flag' stands outside a section"));
}

TEST_F(ConfigFile, SaysTheNewNameOfAKeyThatWasRenamed) {
  EXPECT_THAT(error_of("[pack]\ncapacity = 3\n"),
              HasSubstr("run.toml:2: the key 'capacity' in section 'pack' is now called 'max-length'"));
}

TEST_F(ConfigFile, ReadsFormerNamesWhereTheyAreAccepted) {
  write_file(path_, "[pack]\ncapacity = 3\n");
  const std::vector<base::OptionTable> tables{settings_.table()};
  set_options(read_config_file(path_, tables, FormerNames::Accepted), tables);
  EXPECT_EQ(settings_.max_length, 3);
}

TEST_F(ConfigFile, RefusesValuesOfTheWrongType) {
  EXPECT_THAT(error_of("[pack]\nflag = 1\n"), HasSubstr("run.toml:2: flag must be true or false"));
  EXPECT_THAT(error_of("[pack]\nmax-length = \"3\"\n"), HasSubstr("max-length must be a whole number"));
  EXPECT_THAT(error_of("[pack]\nmax-length = 3.5\n"), HasSubstr("max-length must be a whole number"));
  EXPECT_THAT(error_of("[pack]\nname = [\"a\"]\n"), HasSubstr("name must be a string"));
  EXPECT_THAT(error_of("[pack]\ninputs = [\"a\", 3]\n"), HasSubstr("inputs must be a list of strings"));
  EXPECT_THAT(error_of("[pack]\nname = 2024-01-01\n"), HasSubstr("name must be a string"));
}

TEST_F(ConfigFile, TakesANumberWhereTextIsWanted) {
  EXPECT_EQ(read("[pack]\nname = 20_000\n").front().values.front(), "20000");
  EXPECT_EQ(read("[pack]\nname = 2e9\n").front().values.front(), "2000000000");
  EXPECT_EQ(read("[pack]\nname = 0.5\n").front().values.front(), "0.5");
  EXPECT_THAT(error_of("[pack]\nname = true\n"), HasSubstr("name must be a string"));
}

TEST_F(ConfigFile, SaysWhereTheSyntaxBreaks) {
  EXPECT_THAT(error_of("[pack]\nflag = \n"), HasSubstr("run.toml:2"));
  EXPECT_THAT(error_of("[pack\n"), HasSubstr("run.toml:1"));
}

TEST_F(ConfigFile, TakesOtherAlphabetsInStringsAndCommentsOnly) {
  EXPECT_EQ(read("# é\n[pack]\nname = \"é\" # é\n").size(), 1u);
  EXPECT_EQ(read("[pack]\nname = '''é\n'é'''\n").front().values.front(), "é\n'é");
  EXPECT_EQ(read("[pack]\nname = \"\\\"é\"\n").front().values.front(), "\"é");
  EXPECT_THAT(error_of("[pack]\nname = \"a\"\né = 1\n"), HasSubstr("run.toml:3: a character outside ASCII"));
}

TEST_F(ConfigFile, ReadsBackWhatPrintConfigWrites) {
  Settings other;
  other.flag = true;
  other.max_length = 128;
  other.rate = 0.3;
  other.name = "line\nbreak \\ ü";
  other.inputs = {"a b", "c\"d"};
  set_options(read(print_config({other.table()})), {settings_.table()});
  EXPECT_EQ(settings_.flag, other.flag);
  EXPECT_EQ(settings_.max_length, other.max_length);
  EXPECT_EQ(settings_.rate, other.rate);
  EXPECT_EQ(settings_.name, other.name);
  EXPECT_EQ(settings_.inputs, other.inputs);
  EXPECT_EQ(settings_.depth, std::nullopt);
}

TEST_F(ConfigFile, SaysWhereAValueIsNotTaken) {
  const std::vector<ConfigEntry> entries = read("[pack]\nflag = true\nmax-length = -3\n");
  EXPECT_THAT(test::user_error_of([&] { set_options(entries, {settings_.table()}); }),
              HasSubstr("run.toml:3: max-length"));
  set_options(entries, {base::OptionTable("other")});
}

}  // namespace
}  // namespace plenum::io
