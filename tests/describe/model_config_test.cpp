#include "plenum/describe/model_config.h"

#include <gtest/gtest.h>

#include "plenum/base/check.h"

namespace plenum::describe {
namespace {

TEST(ModelConfig, AcceptsItsPresets) {
  for (const std::string& name : preset_names()) EXPECT_NO_THROW(require_valid(preset(name))) << name;
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

}  // namespace
}  // namespace plenum::describe
