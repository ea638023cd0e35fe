#include "plenum/schedule/core/action_text.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::schedule {
namespace {

const StageLayers kLayers(Problem{.stage_layers = {3, 4, 5}});

/// An action that has everything its type can name.
Action full_action(const ActionTraits& traits) {
  Action action{.type = traits.type};
  if (traits.has_stage) action.stage = {1};
  if (traits.has_micro_batch) action.micro_batch = {1234567};
  if (traits.layers != ActionTraits::Layers::None) {
    action.first_layer = {4};
    action.end_layer = LayerId::at(traits.layers == ActionTraits::Layers::One ? 5 : 6);
  }
  if (traits.has_factor) action.factor = 65000;
  if (traits.is_splittable) {
    action.piece = 2;
    action.num_pieces = 5;
  }
  if (traits.may_be_stale) action.age = 3;
  return action;
}

TEST(ActionText, ReadsBackWhatItWroteOfEveryType) {
  for (const ActionTraits& traits : all_action_traits()) {
    const Action action = full_action(traits);
    EXPECT_EQ(parse_action(action_text(action, kLayers), kLayers), action) << action_text(action, kLayers);
    if (traits.layers == ActionTraits::Layers::One) continue;
    const Action whole = traits.has_stage
                             ? kLayers.whole(traits.type, {2}, {traits.has_micro_batch ? 0 : ~0u})
                             : Action{.type = traits.type};
    EXPECT_EQ(parse_action(action_text(whole, kLayers), kLayers), whole) << action_text(whole, kLayers);
  }
}

TEST(ActionText, IsShort) {
  EXPECT_EQ(action_text(kLayers.whole(ActionType::Forward, {2}, {1}), kLayers), "F2.1");
  EXPECT_EQ(action_text({.type = ActionType::Agree}, kLayers), "N");
  EXPECT_EQ(action_text(full_action(traits_of(ActionType::Backward)), kLayers), "B1.1234567[4:6]");
  EXPECT_EQ(action_text(full_action(traits_of(ActionType::CurvatureA)), kLayers), "KA1.1234567[4]/65000~3");
  EXPECT_EQ(action_text(full_action(traits_of(ActionType::Invert)), kLayers), "KI1[4]/65000#2/5~3");
}

TEST(ActionText, WritesAStageOfOneLayerWithoutIt) {
  const StageLayers single(Problem{.stage_layers = {1}});
  EXPECT_EQ(action_text(single.whole(ActionType::Update, {}), single), "U0");
  EXPECT_EQ(parse_action("U0[0]", single), single.whole(ActionType::Update, {}));
}

TEST(ActionText, RefusesMalformedWords) {
  const char* words[] = {"",
                         "0",
                         "Q0.0",
                         "f0.0",
                         "F",
                         "F0",
                         "F0.",
                         "F0.x",
                         "F.0",
                         "F3.0",
                         "F-1.0",
                         "F0.-1",
                         "F0.0.0",
                         "F0.0[",
                         "F0.0[1",
                         "F0.0[1:]",
                         "F0.0[:2]",
                         "F0.0[1;2]",
                         "F0.0~1",
                         "F0.0#0/2",
                         "F0.0/1",
                         "SF0.0[0]",
                         "N0",
                         "U0.1",
                         "KA0.0",
                         "KA0.0[0]",
                         "KA0.0[0:1]",
                         "KA0.0[0]/",
                         "KI0[0]/0#1",
                         "KI0[0]/0#1/",
                         "KI0[0]/0~",
                         "KI0[0]/0~1#0/2",
                         "F0.4294967295",
                         "F0.99999999999",
                         "F70000.0",
                         "KA0.0[0]/65535",
                         "KA0.0[0]/1~255",
                         "F0.0[65535]",
                         " F0.0",
                         "F0.0 "};
  for (const char* word : words) {
    EXPECT_THROW(parse_action(word, kLayers), base::UserError) << word;
  }
}

TEST(ActionText, SaysWhatIsWrong) {
  const auto message_of = [](const char* word) -> std::string {
    try {
      parse_action(word, kLayers);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of("F7.0"), "action 'F7.0': there are 3 stages");
  EXPECT_EQ(message_of("F0"), "action 'F0': '.' expected before ''");
  EXPECT_EQ(message_of("F0.0!"), "action 'F0.0!': '!' is too much");
  EXPECT_TRUE(message_of("Q1.0").starts_with("unknown action 'Q1.0'; the codes are F B I W RC "));
}

TEST(ActionTypes, AllStandInTheDocumentation) {
  std::ifstream file(PLENUM_SOURCE_DIR "/docs/schedules.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const ActionTraits& traits : all_action_traits()) {
    EXPECT_NE(text.find("`" + std::string(traits.code) + "`"), std::string::npos) << traits.name;
  }
}

}  // namespace
}  // namespace plenum::schedule
