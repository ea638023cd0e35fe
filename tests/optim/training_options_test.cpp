#include "plenum/optim/training_options.h"

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::optim {
namespace {

TEST(TrainingOptions, AreReadBackAsWritten) {
  TrainingOptions options;
  const base::OptionTable table = options.table();
  const auto set = [&](const char* name, const char* text) { table.find(name)->set({text}); };
  set("optimizer", "lamb");
  set("lr-schedule", "wsd");
  set("warmup", "2e9tok");
  set("decay-duration", "3ep");
  set("epsilon", "1e-5");
  set("final-ratio", "10%");
  set("layer-decay", "0.75");
  EXPECT_EQ(options.optimizer.layer_decay, 0.75);
  EXPECT_EQ(options.optimizer.kind, OptimizerKind::Lamb);
  EXPECT_EQ(options.learning_rate.warmup, (Duration{2e9, DurationUnit::Tokens}));
  TrainingOptions copy;
  const base::OptionTable copy_table = copy.table();
  for (const base::Option& option : table.options()) {
    const std::vector<std::string> values = option.get();
    if (!values.empty()) copy_table.find(option.name)->set(values);
  }
  EXPECT_EQ(copy.optimizer, options.optimizer);
  EXPECT_EQ(copy.learning_rate, options.learning_rate);
}

TEST(TrainingOptions, LeaveEpsilonToTheOptimizer) {
  TrainingOptions options;
  EXPECT_TRUE(options.table().find("epsilon")->get().empty());
  EXPECT_FALSE(options.optimizer.epsilon.has_value());
}

TEST(TrainingOptions, RefuseWhatCannotBeMeant) {
  TrainingOptions options;
  const base::OptionTable table = options.table();
  test::expect_user_error([&] { table.find("warmup")->set({"soon"}); }, "warmup must be a duration");
  test::expect_user_error([&] { table.find("beta1")->set({"1"}); }, "beta1 must be between");
  test::expect_user_error([&] { table.find("epsilon")->set({"0"}); }, "epsilon must be between");
  test::expect_user_error([&] { table.find("optimizer")->set({"adam"}); }, "did you mean 'adamw'");
  test::expect_user_error([&] { table.find("layer-decay")->set({"1.1"}); }, "layer-decay must be between");
  for (const char* optimizer : {"muon", "soap"}) {
    table.find("optimizer")->set({optimizer});
    table.find("layer-decay")->set({"0.9"});
    test::expect_user_error([&] { options.check(); }, "layer-decay is for adamw, bert-adam and lamb");
    table.find("layer-decay")->set({"1"});
    EXPECT_NO_THROW(options.check());
  }
  options.learning_rate.peak = 0;
  test::expect_user_error([&] { options.check(); }, "learning-rate must be positive");
}

}  // namespace
}  // namespace plenum::optim
