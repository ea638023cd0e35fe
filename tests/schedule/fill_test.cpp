#include "plenum/schedule/fill.h"

#include <gtest/gtest.h>

#include "plenum/schedule/check.h"
#include "plenum/schedule/generator.h"
#include "plenum/schedule/kfac_filler.h"
#include "plenum/schedule/profile_costs.h"

namespace plenum::schedule {
namespace {

/// One layer of BERT-Base on a P100, 32 sequences of 128 tokens.
constexpr LayerCosts kBertBaseP100 = {.forward_seconds = 9.748101e-3,
                                      .backward_seconds = 16.450238e-3,
                                      .curvature_seconds = 25.546598e-3,
                                      .inversion_seconds = 71.666884e-3,
                                      .precondition_seconds = 6.805301e-3};

struct Expected {
  std::string_view schedule;
  double bound;
};

TEST(Fill, RefreshesAlmostAsOftenAsTheBubblesAllow) {
  for (const auto& [name, bound] : {Expected{"gpipe", 2.21}, {"1f1b", 2.21}, {"chimera", 5.28}}) {
    SCOPED_TRACE(name);
    const Schedule base =
        generator_named(name).generate({.depth = 4, .num_micro_batches = 4, .stage_layers = {3}});
    const ProfileCosts costs(base, kBertBaseP100);
    const FillResult result = fill(base, KfacFiller(), costs);
    EXPECT_NEAR(result.refresh_bound, bound, 0.005);
    EXPECT_LE(result.refresh_steps, result.refresh_bound * 1.03);
    EXPECT_GE(result.utilization, 0.95);
    EXPECT_LE(result.filled_step_seconds, result.base_step_seconds * 1.01);
    EXPECT_TRUE(check(result.schedule).violations.empty());
  }
}

}  // namespace
}  // namespace plenum::schedule
