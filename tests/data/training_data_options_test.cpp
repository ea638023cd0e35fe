#include "plenum/data/batches/training_data_options.h"

#include <gtest/gtest.h>

#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using testing::HasSubstr;
using Unit = GlobalBatchSize::Unit;

TEST(GlobalBatch, IsReadInSequencesOrTokens) {
  EXPECT_EQ(parse_global_batch("256", "global-batch").amount, 256U);
  EXPECT_EQ(parse_global_batch("256", "global-batch").unit, Unit::Sequences);
  EXPECT_EQ(parse_global_batch("8sp", "global-batch").unit, Unit::Sequences);
  EXPECT_EQ(parse_global_batch("32768tok", "global-batch").amount, 32768U);
  EXPECT_EQ(parse_global_batch("32768tok", "global-batch").unit, Unit::Tokens);
  for (const char* text : {"", "tok", "-1", "0", "12ep", "1.5", "256 sp", "99999999999999999999"}) {
    EXPECT_THAT(test::user_error_of([&] { parse_global_batch(text, "global-batch"); }),
                HasSubstr("global-batch"))
        << text;
  }
}

TEST(TrainingDataOptions, AreSetByName) {
  TrainingDataOptions options;
  const base::OptionTable table = options.table();
  const auto set = [&](const char* name, const char* value) {
    ASSERT_NE(table.find(name), nullptr) << name;
    table.find(name)->set({value});
  };
  EXPECT_EQ(table.name(), "data");
  set("data", "somewhere");
  set("layout", "padded");
  set("order", "packs");
  set("global-batch", "512tok");
  set("micro-batch-tokens", "1024");
  set("packing-depth", "3");
  set("mask-rate", "30%");
  set("mask-unit", "word");
  set("mask-split", "100/0/0");
  options.check();
  EXPECT_EQ(options.layout, Layout::Padded);
  EXPECT_EQ(options.order(), OrderUnit::Packs);
  EXPECT_EQ(options.global_batch_size().amount, 512U);
  EXPECT_EQ(options.micro_batch_tokens, 1024);
  EXPECT_DOUBLE_EQ(options.masking().rate, 0.3);
  EXPECT_EQ(options.masking().unit, MaskUnit::Word);
  EXPECT_EQ(options.masking().split, (MaskSplit{100, 0, 0}));
}

TEST(TrainingDataOptions, OrderPacksForThePackedLayoutAndForStepsOfTokens) {
  TrainingDataOptions options;
  EXPECT_EQ(options.order(), OrderUnit::Packs);  // what is chosen by itself is a number of tokens
  options.global_batch = "8";
  EXPECT_EQ(options.order(), OrderUnit::Sequences);
  options.layout = Layout::Packed;
  EXPECT_EQ(options.order(), OrderUnit::Packs);
  options.layout = Layout::Unpadded;
  options.global_batch = "512tok";
  EXPECT_EQ(options.order(), OrderUnit::Packs);
  options.order_choice = OrderChoice::Sequences;
  EXPECT_EQ(options.order(), OrderUnit::Sequences);
}

TEST(TrainingDataOptions, RefuseContradictions) {
  TrainingDataOptions valid;
  valid.directory = "somewhere";
  valid.check();
  const auto error_after = [&](auto change) {
    TrainingDataOptions options = valid;
    change(options);
    return test::user_error_of([&] { options.check(); });
  };
  EXPECT_THAT(error_after([](auto& options) { options.directory.clear(); }), HasSubstr("--data DIR"));
  EXPECT_THAT(error_after([](auto& options) { options.mask_rate = 0; }), HasSubstr("mask-rate"));
  EXPECT_THAT(error_after([](auto& options) { options.mask_split = "1/2/3"; }), HasSubstr("mask-split"));
  EXPECT_THAT(error_after([](auto& options) { options.global_batch = "many"; }), HasSubstr("global-batch"));
  EXPECT_THAT(error_after([](auto& options) {
                options.global_batch = "8";
                options.packing_depth = 3;
              }),
              HasSubstr("--order packs"));
  EXPECT_EQ(error_after([](auto& options) {
              options.layout = Layout::Packed;
              options.order_choice = OrderChoice::Sequences;
            }),
            "no error");
  EXPECT_THAT(error_after([](auto& options) {
                options.layout = Layout::Packed;
                options.packing_depth = 3;
                options.packing_plan = "plan.json";
              }),
              HasSubstr("--packing-depth does not go with --packing-plan"));
}

}  // namespace
}  // namespace plenum::data
