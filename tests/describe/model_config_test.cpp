#include "plenum/describe/model_config.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/support/expect_user_error.h"

namespace plenum::describe {
namespace {

TEST(ModelConfig, AcceptsItsPresets) {
  for (const std::string& name : preset_names()) EXPECT_NO_THROW(require_valid(preset(name))) << name;
}

TEST(ModelConfig, ListsTheModelsThereAreWhenAskedForAnother) {
  test::expect_user_error([] { preset("bert-huge"); },
                          "model must be one of bert-tiny, bert-mini, bert-small, bert-base, bert-large: "
                          "'bert-huge'");
}

TEST(ModelConfig, SaysInWordsWhichHeadsDoNotFit) {
  ModelConfig config = preset("bert-tiny");
  config.num_heads = 3;
  test::expect_user_error([&] { require_valid(config); }, "width 128 is not a multiple of 3 heads");
}

TEST(ModelConfig, RefusesDropoutThatWouldBeRoundedToNone) {
  for (double ModelConfig::*rate : {&ModelConfig::hidden_dropout, &ModelConfig::attention_dropout}) {
    ModelConfig config = preset("bert-tiny");
    for (const double accepted : {0.0, 1.0 / 512, 0.1, 0.99}) {
      config.*rate = accepted;
      EXPECT_NO_THROW(require_valid(config)) << accepted;
    }
    for (const double refused : {-0.1, 1e-9, 0.0019, 1.0}) {
      config.*rate = refused;
      EXPECT_THROW(require_valid(config), base::UserError) << refused;
    }
  }
}

TEST(ModelConfig, RefusesATaskWithNothingToChooseFrom) {
  const auto expect_refused = [](const Task& task, const char* why) {
    ModelConfig config = preset("bert-tiny");
    config.task = task;
    test::expect_user_error([&] { require_valid(config); }, why);
  };
  expect_refused({.kind = TaskKind::Classification, .labels = {"only"}},
                 "classification needs at least 2 classes: 1");
  expect_refused({.kind = TaskKind::TokenClassification}, "token-classification needs at least 2 classes: 0");
  expect_refused({.kind = TaskKind::MultipleChoice, .num_choices = 1},
                 "an example of multiple-choice needs at least 2 choices: 1");
  expect_refused({.kind = TaskKind::Regression, .dropout = 1.0},
                 "dropout of the task's head must be 0 or in [1/512, 1): 1");
}

}  // namespace
}  // namespace plenum::describe
