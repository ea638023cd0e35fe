#include "plenum/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/support/expect_user_error.h"

namespace plenum::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Colour { Red, Green };

std::string error_of(const Option& option, const std::vector<std::string>& values) {
  return test::user_error_of([&] { option.set(values); });
}

TEST(OptionTable, SetsTypedValuesFromTextAndGivesThemBack) {
  bool flag = false;
  std::int64_t integer = 3;
  std::optional<std::int64_t> absent;
  double number = 0.5;
  double fraction = 0;
  std::string text;
  std::vector<std::string> list;
  Colour colour = Colour::Red;
  OptionTable table("test");
  table.add("flag", flag, "");
  table.add("integer", integer, 1, 10, "");
  table.add("absent", absent, 1, 10, "");
  table.add("number", number, 0, 1, "");
  table.add_fraction("fraction", fraction, "");
  table.add("text", text, "FILE", "");
  table.add("list", list, "FILE", "");
  table.add_choice("colour", colour, {{"red", Colour::Red}, {"green", Colour::Green}}, "");

  table.find("flag")->set({"true"});
  table.find("integer")->set({"7"});
  EXPECT_TRUE(table.find("absent")->get().empty());
  table.find("absent")->set({"4"});
  table.find("number")->set({"0.25"});
  table.find("fraction")->set({"0.5%"});
  table.find("text")->set({"a b"});
  table.find("list")->set({"x", "y"});
  table.find("colour")->set({"green"});

  EXPECT_TRUE(flag);
  EXPECT_EQ(integer, 7);
  EXPECT_EQ(absent, 4);
  EXPECT_EQ(number, 0.25);
  EXPECT_DOUBLE_EQ(fraction, 0.005);
  EXPECT_EQ(text, "a b");
  EXPECT_THAT(list, ElementsAre("x", "y"));
  EXPECT_EQ(colour, Colour::Green);
  EXPECT_THAT(table.find("colour")->get(), ElementsAre("green"));
  EXPECT_THAT(table.find("integer")->get(), ElementsAre("7"));
  EXPECT_EQ(table.find("other"), nullptr);
}

TEST(OptionTable, RefusesValuesThatDoNotFitAndKeepsTheOldOne) {
  std::int64_t integer = 3;
  double fraction = 0.1;
  Colour colour = Colour::Red;
  OptionTable table("test");
  table.add("integer", integer, 1, 10, "");
  table.add_fraction("fraction", fraction, "");
  table.add_choice("colour", colour, {{"red", Colour::Red}, {"green", Colour::Green}}, "");

  EXPECT_THAT(error_of(*table.find("integer"), {"eleven"}), HasSubstr("whole number"));
  EXPECT_THAT(error_of(*table.find("integer"), {"11"}), HasSubstr("at most 10"));
  EXPECT_THAT(error_of(*table.find("integer"), {"0"}), HasSubstr("at least 1"));
  EXPECT_THAT(error_of(*table.find("integer"), {"99999999999999999999"}), HasSubstr("out of range"));
  EXPECT_THAT(error_of(*table.find("fraction"), {"200%"}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(error_of(*table.find("colour"), {"gren"}), HasSubstr("did you mean 'green'"));
  EXPECT_EQ(integer, 3);
  EXPECT_EQ(fraction, 0.1);
  EXPECT_EQ(colour, Colour::Red);
}

TEST(OptionTable, RefusesTheSameNameTwice) {
  bool flag = false;
  OptionTable table("test");
  table.add("flag", flag, "");
  EXPECT_THROW(table.add("flag", flag, ""), InternalError);
}

TEST(NearestName, FindsSlipsOfTheFingersAndNothingElse) {
  const std::vector<std::string> known = {"max-length", "depth", "algorithm"};
  EXPECT_EQ(nearest_name("max-lenght", known), "max-length");
  EXPECT_EQ(nearest_name("max_length", known), "max-length");
  EXPECT_EQ(nearest_name("dept", known), "depth");
  EXPECT_EQ(nearest_name("trian", {"train", "inspect"}), "train");
  EXPECT_EQ(nearest_name("temperature", known), std::nullopt);
  EXPECT_EQ(nearest_name("gpu", {"cpu", "cuda"}), std::nullopt);
  EXPECT_EQ(nearest_name("cud", {"cpu", "cuda"}), "cuda");
  EXPECT_EQ(nearest_name("bert-huge", {"bert-base", "bert-large"}), std::nullopt);
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

}  // namespace
}  // namespace plenum::base
