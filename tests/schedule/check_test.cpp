#include "plenum/schedule/check/check.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/fitted_options.h"
#include "tests/support/kfac_schedule.h"

namespace plenum::schedule {
namespace {

using testing::HasSubstr;

std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string changed(text);
  const std::size_t at = changed.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return changed.replace(at, from.size(), to);
}

/// The first violation of a schedule in text, as one line; empty if there is none.
std::string violation_of(std::string_view text) {
  const CheckResult result = check(parse_schedule(text, "test"));
  if (result.violations.empty()) return {};
  return result.violations.front().where + ": " + result.violations.front().why;
}

constexpr std::string_view kPipeline = R"(plenum-schedule 1
layers 2 2
micro-batches 2
tied
rank 0 holds 0
rank 1 holds 1
0 compute: F0.0 F0.1 B0.0 B0.1 NS0 U0
0 data: TR N
0 pipe: SF0.0 SF0.1 RB0.0 RB0.1
1 compute: F1.0 B1.0 F1.1 B1.1 NS1 U1
1 data: TR N
1 pipe: RF1.0 RF1.1 SB1.0 SB1.1
)";

constexpr std::string_view kReplicas = R"(plenum-schedule 1
layers 2
micro-batches 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0[1] B0.0[0] NS0 U0
0 data: AR0[1] AR0[0] N
1 compute: F0.1 B0.1[1] B0.1[0] NS0 U0
1 data: AR0[1] AR0[0] N
)";

constexpr std::string_view kTiedHalves = R"(plenum-schedule 1
layers 2
micro-batches 4
tied
tied-halves
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 F0.1 B0.1[1] B0.1[0] NS0 U0
0 data: TW TO AR0 TR N
1 compute: F0.2 B0.2 F0.3 I0.3 W0.3[1] W0.3[0] NS0 U0
1 data: TW TO AR0 TR N
)";

constexpr std::string_view kSharded = R"(plenum-schedule 1
layers 2
micro-batches 2
recompute full
sharding optimizer
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 RC0.0 B0.0 NS0 U0
0 data: RS0 N AG0
1 compute: F0.1 RC0.1 I0.1 W0.1 NS0 U0
1 data: RS0 N AG0
)";

constexpr std::string_view kShampoo = R"(plenum-schedule 1
layers 1
micro-batches 1
preconditioner shampoo
factors 1
staleness 1
rank 0 holds 0
0 compute: SR0[0]/0~1 F0.0 B0.0 NS0 SA0 P0~1 U0
0 data: N
)";

std::string pipeline_with(std::string_view from, std::string_view to) {
  return violation_of(with(kPipeline, from, to));
}
std::string replicas_with(std::string_view from, std::string_view to) {
  return violation_of(with(kReplicas, from, to));
}
std::string sharded_with(std::string_view from, std::string_view to) {
  return violation_of(with(kSharded, from, to));
}
std::string kfac_with(std::string_view from, std::string_view to) {
  return violation_of(with(test::kKfacSchedule, from, to));
}

std::string halves_with(std::string_view from, std::string_view to) {
  return violation_of(with(kTiedHalves, from, to));
}

TEST(Check, AcceptsWhatIsRight) {
  for (const std::string_view text :
       {kPipeline, kReplicas, kTiedHalves, kSharded, test::kKfacSchedule, kShampoo}) {
    EXPECT_EQ(violation_of(text), "") << text;
  }
}

TEST(Check, AcceptsTheExampleOfTheDocumentation) {
  std::ifstream file(PLENUM_SOURCE_DIR "/docs/schedules.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find("plenum-schedule 1\n");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(violation_of(text.substr(begin, text.find("```", begin) - begin)), "");
}

TEST(Check, KnowsTheHalvesOfATiedParameter) {
  EXPECT_EQ(halves_with("tied-halves\n", ""),
            "rank 0, data, step 0, TW: the schedule does not reduce halves of a tied parameter");
  EXPECT_THAT(halves_with("0 data: TW TO", "0 data: TO"), HasSubstr("rank 0 does not take part"));
  const std::string both =
      with(with(kTiedHalves, "0 data: TW TO", "0 data: TW"), "1 data: TW TO", "1 data: TW");
  EXPECT_THAT(violation_of(both), HasSubstr("NS0: needs the last layers' gradient of the tied parameter"));
  // The rows that are read are known before a backward makes their gradient.
  const std::string late =
      with(with(kTiedHalves, "TW TO AR0 TR N", "TO AR0 TW TR N"), "TW TO AR0 TR N", "TO AR0 TW TR N");
  EXPECT_THAT(violation_of(late),
              HasSubstr("which comes after B0.0 on rank 0, which waits for this in turn"));
  EXPECT_EQ(halves_with("tied-halves\n", "tied-halves\nsharding optimizer\n"),
            "rank 0, data, step 0, TO: the optimizer is sharded: the half is reduced by TS, not TO");
  EXPECT_EQ(halves_with("0 data: TW TO", "0 data: TW TS"),
            "rank 0, data, step 0, TS: the schedule says nothing of sharding: the half is reduced by TO");
  // The half of the last layers is complete with the last micro-batch's backward through them.
  const std::string cut = with(kTiedHalves, "F0.1 B0.1[1] B0.1[0]", "F0.1 B0.1[0]");
  EXPECT_THAT(
      violation_of(cut),
      HasSubstr(
          "TO: needs the weight gradient of stage 0 from layer 1 for micro-batch 1, which nothing makes"));
}

TEST(Check, AcceptsEveryGeneratedSchedule) {
  for (const Generator& generator : all_generators()) {
    for (const std::size_t depth : {1, 2, 4}) {
      for (const std::size_t num_replicas : {1, 2}) {
        for (int choice = 0; choice < 16; ++choice) {
          const GeneratorOptions options{
              .depth = depth,
              .num_micro_batches = 4,
              .num_replicas = num_replicas,
              .stage_layers = {3},
              .num_buckets = 2,
              .recomputation = choice & 1 ? Recomputation::Full : Recomputation::None,
              .sharding = choice & 2 ? Sharding::Optimizer : Sharding::None,
              .has_tied_parameters = (choice & 4) != 0,
              .has_tied_halves = (choice & 4) != 0 && depth == 1 && !generator.has_chunks,
              .has_tensor_norms = (choice & 8) != 0};
          if (!test::fits(generator, options)) continue;
          const CheckResult result = check(generator.generate(options));
          EXPECT_TRUE(result.violations.empty())
              << generator.name << " depth " << depth << " replicas " << num_replicas << " choice " << choice
              << ": " << result.violations.front().where << ": " << result.violations.front().why;
        }
      }
    }
  }
}

TEST(Check, NamesTheFirstViolationInItsError) {
  const Schedule schedule = parse_schedule(with(kPipeline, "B0.0 B0.1", "B0.1"), "test");
  test::expect_user_error([&] { require_checked(schedule); },
                          "rank 0, data, step 0, TR: needs the weight gradient of stage 0");
  require_checked(parse_schedule(kPipeline, "test"));
}

TEST(Check, WantsInputsToExist) {
  EXPECT_EQ(pipeline_with("B0.0 B0.1", "B0.1"),
            "rank 0, data, step 0, TR: needs the weight gradient of stage 0 from layer 0 for micro-batch 0, "
            "which nothing makes");
  EXPECT_EQ(
      pipeline_with("F0.0 F0.1 B0.0", "B0.0 F0.0 F0.1"),
      "rank 0, compute, step 0, B0.0: needs the saved activations of stage 0 from layer 0 for micro-batch "
      "0, which F0.0 on rank 0 makes only later in the same lane");
  EXPECT_EQ(
      sharded_with("F0.0 RC0.0 B0.0", "F0.0 B0.0"),
      "rank 0, compute, step 0, B0.0: needs the saved activations of stage 0 from layer 0 for micro-batch "
      "0, which nothing makes");
}

TEST(Check, FindsActionsThatWaitForEachOther) {
  EXPECT_EQ(
      pipeline_with("SF0.0 SF0.1 RB0.0", "SF0.0 RB0.0 SF0.1"),
      "rank 0, pipe, step 0, RB0.0: needs SB1.0 on rank 1, which comes after RF1.1 on rank 1, which waits "
      "for this in turn; accepted is rank 0, pipe, step 0: … SF0.1 RB0.0 RB0.1");
  EXPECT_EQ(
      pipeline_with("F0.0 F0.1 B0.0", "F0.0 B0.0 F0.1"),
      "rank 0, pipe, step 0, SF0.1: needs the output of stage 0 from layer 0 for micro-batch 1, made by "
      "F0.1 on rank 0, which comes after B0.0 on rank 0, which waits for this in turn; accepted is rank 0, "
      "pipe, step 0: … RB0.0 SF0.1 RB0.1 (first of 2 lanes)");
  EXPECT_EQ(
      replicas_with("1 data: AR0[1] AR0[0]", "1 data: AR0[0] AR0[1]"),
      "rank 0, data, step 0, AR0[1]: needs rank 1 to take part, which comes after AR0[0] on rank 1, which "
      "waits for this in turn");
}

TEST(Check, MatchesSendsAndReceives) {
  EXPECT_EQ(pipeline_with("RF1.0 ", ""),
            "rank 0, pipe, step 0, SF0.0: there is no RF1.0 on rank 1 in this step");
  EXPECT_EQ(pipeline_with("SB1.0 ", ""),
            "rank 0, pipe, step 0, RB0.0: there is no SB1.0 on rank 1 in this step");
  EXPECT_EQ(
      pipeline_with("SF0.0", "SF0.0 SF0.0"),
      "rank 0, pipe, step 0, SF0.0: makes the sent activation of stage 0 for micro-batch 0 a second time, "
      "after SF0.0 on rank 0");
  EXPECT_EQ(pipeline_with("SF0.0", "SF0.0 SB0.0"), "rank 0, pipe, step 0, SB0.0: the pipeline ends here");
  EXPECT_EQ(pipeline_with("RF1.0", "RF1.0 RB1.0"), "rank 1, pipe, step 0, RB1.0: the pipeline ends here");
  const std::string one_rank =
      with(with(kPipeline, "rank 0 holds 0\nrank 1 holds 1", "rank 0 holds 0 1"),
           kPipeline.substr(kPipeline.find("0 compute")),
           "0 compute: F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1 NS1 NS0 U0 U1\n0 data: N\n");
  EXPECT_EQ(violation_of(one_rank), "");
  EXPECT_EQ(
      violation_of(one_rank + "0 pipe: SF0.0\n"),
      "rank 0, pipe, step 0, SF0.0: stage 1 runs on the same rank: there is nothing to send or receive");
}

TEST(Check, RefusesASendOrderThatDiffersFromTheReceiveOrder) {
  EXPECT_EQ(pipeline_with("SF0.0 SF0.1", "SF0.1 SF0.0"),
            "rank 1, pipe, step 0, RF1.0: the next message from rank 0 is SF0.1: they come in the order in "
            "which they are sent; accepted is rank 0, pipe, step 0: SF0.0 SF0.1 RB0.0 RB0.1");
  EXPECT_EQ(pipeline_with("SB1.0 SB1.1", "SB1.1 SB1.0"),
            "rank 0, pipe, step 0, RB0.0: the next message from rank 1 is SB1.1: they come in the order in "
            "which they are sent; accepted is rank 1, pipe, step 0: … SB1.0 SB1.1");
}

TEST(Check, RefusesSendsThatWaitForEachOther) {
  // With buffers this runs: each rank's send leaves before it receives.
  constexpr std::string_view text = R"(plenum-schedule 1
layers 1 1
micro-batches 2
rank 0 holds 0
rank 1 holds 1
0 compute: F0.0 F0.1 B0.0 B0.1 NS0 U0
0 pipe: SF0.0 SF0.1 RB0.0 RB0.1
0 data: N
1 compute: F1.0 B1.0 F1.1 B1.1 NS1 U1
1 pipe: RF1.0 SB1.0 RF1.1 SB1.1
1 data: N
)";
  EXPECT_EQ(violation_of(text),
            "rank 0, pipe, step 0, SF0.1: needs RF1.1 on rank 1, which comes after SB1.0 on rank 1, which "
            "waits for this in turn; accepted is rank 1, pipe, step 0: … RF1.1 SB1.0 SB1.1");
  EXPECT_EQ(violation_of(with(text, "SB1.0 RF1.1", "RF1.1 SB1.0")), "");
}

TEST(Check, OffersNoOrderOfMessagesWhereNoneHelps) {
  EXPECT_EQ(replicas_with("1 data: AR0[1] AR0[0]", "1 data: AR0[0] AR0[1]").find("accepted"),
            std::string::npos);
}

TEST(Check, WantsWholeGroups) {
  EXPECT_EQ(replicas_with("0 data: AR0[1] AR0[0] N", "0 data: AR0[1] AR0[0]"),
            "rank 1, data, step 0, N: rank 0 does not take part in this step");
  EXPECT_EQ(violation_of(with(with(kReplicas, " N\n", "\n"), " N\n", "\n")),
            "rank 0, data, step 0, end of the step: there is no N: all ranks agree before they update");
  EXPECT_EQ(replicas_with("0 data: AR0[1] AR0[0]", "0 data: AR0"),
            "rank 0, data, step 0, AR0: rank 1 does not take part in this step");
  EXPECT_EQ(replicas_with("0 data: AR0[1] AR0[0] N", "0 data: AR0[1] AR0[0] N N"),
            "rank 0, data, step 0, N: makes the agreement of all ranks a second time, after N on rank 0");
  EXPECT_EQ(pipeline_with("0 data: TR N", "0 data: N"),
            "rank 1, data, step 0, TR: rank 0 does not take part in this step");
  EXPECT_EQ(pipeline_with("0 data: TR N", "0 data: AR0 TR N"),
            "rank 0, data, step 0, AR0: no other rank has a part in it");
}

TEST(Check, WantsEveryMicroBatchToPassEveryStageOnce) {
  EXPECT_EQ(pipeline_with("F0.0 F0.1", "F0.0"),
            "rank 0, pipe, step 0, SF0.1: no rank runs the forward of stage 0 for micro-batch 1");
  EXPECT_EQ(
      pipeline_with("F0.0 F0.1", "F0.0 F0.1 F0.0"),
      "rank 0, compute, step 0, F0.0: makes the output of stage 0 from layer 0 for micro-batch 0 a second "
      "time, after F0.0 on rank 0");
  EXPECT_EQ(replicas_with("F0.1 B0.1[1]", "F0.1 F0.0 B0.1[1]"),
            "rank 1, compute, step 0, F0.0: micro-batch 0 passes stage 0 on rank 0");
  EXPECT_EQ(
      violation_of(with(with(kReplicas, "F0.1 B0.1[1] B0.1[0] NS0 U0", "NS0 U0"), "0 holds 0", "0 holds 0")),
      "rank 0, compute, step 0, end of the step: no rank runs the forward of stage 0 for micro-batch 1");
  EXPECT_EQ(
      pipeline_with("B1.1 NS1", "B1.1 W1.1 NS1"),
      "rank 1, compute, step 0, W1.1: makes the weight gradient of stage 1 from layer 2 for micro-batch 1 a "
      "second time, after B1.1 on rank 1");
  EXPECT_EQ(sharded_with("I0.1 W0.1", "I0.1"),
            "rank 1, data, step 0, RS0: needs the weight gradient of stage 0 from layer 0 for micro-batch 1, "
            "which nothing makes");
  EXPECT_EQ(
      pipeline_with("F0.0 F0.1", "F0.0 F0.1 RC0.0"),
      "rank 0, compute, step 0, RC0.0: makes the saved activations of stage 0 from layer 0 for micro-batch "
      "0 a second time, after F0.0 on rank 0");
}

TEST(Check, WantsEveryLayerUpdatedOnceWithItsWholeGradient) {
  EXPECT_EQ(pipeline_with("U0", "U0[0]"), "rank 0, compute, step 0, end of the step: layer 1 is not updated");
  EXPECT_EQ(pipeline_with("U0", "U0 U0[1]"),
            "rank 0, compute, step 0, U0[1]: makes the update of layer 1 a second time, after U0 on rank 0");
  EXPECT_EQ(
      pipeline_with("B0.1 NS0", "NS0 B0.1"),
      "rank 0, compute, step 0, NS0: needs the weight gradient of stage 0 from layer 0 for micro-batch 1, "
      "which B0.1 on rank 0 makes only later in the same lane");
  EXPECT_EQ(violation_of(with(with(kReplicas, "AR0[1] AR0[0] N", "AR0[1] N"), "AR0[1] AR0[0] N", "AR0[1] N")),
            "rank 0, compute, step 0, NS0: needs the reduced gradient of layer 0, which nothing makes");
  EXPECT_EQ(violation_of(with(with(kPipeline, "TR N", "N"), "TR N", "N")),
            "rank 0, compute, step 0, NS0: needs the gradient of the tied parameter, which nothing makes");
}

TEST(Check, WantsRanksToAgreeOnTheWholeGradientBeforeTheyUpdate) {
  EXPECT_EQ(violation_of(with(kShampoo, "0 data: N\n", "")),
            "rank 0, data, step 0, end of the step: there is no N: all ranks agree before they update");
  EXPECT_EQ(replicas_with("NS0 U0", "U0"),
            "rank 0, data, step 0, N: needs the squares of the gradient of layer 0, which nothing makes");
  EXPECT_EQ(replicas_with("NS0 U0", "NS0[1] U0"),
            "rank 0, data, step 0, N: needs the squares of the gradient of layer 0, which nothing makes");
  EXPECT_EQ(replicas_with("NS0 U0", "NS0[1] NS0[0] U0"), "");
  EXPECT_EQ(replicas_with("NS0 U0", "NS0[1] NS0 U0"),
            "rank 0, compute, step 0, NS0: makes the squares of the gradient of layer 1 a second time, after "
            "NS0[1] on rank 0");
}

constexpr std::string_view kGathered = R"(plenum-schedule 1
layers 4
micro-batches 2
sharding parameters
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0[0] F0.0[1] F0.0[2] F0.0[3] B0.0[3] B0.0[2] B0.0[1] B0.0[0] NS0 U0
0 data: AG0[0] GF0.0[1] GF0.0[2] GF0.0[3] GB0.0[1] RR0.0[3] RR0.0[2] RR0.0[1] RR0.0[0] N
1 compute: F0.1[0] F0.1[1] F0.1[2] F0.1[3] B0.1[3] B0.1[2] B0.1[1] B0.1[0] NS0 U0
1 data: AG0[0] GF0.0[1] GF0.0[2] GF0.0[3] GB0.0[1] RR0.0[3] RR0.0[2] RR0.0[1] RR0.0[0] N
)";

TEST(Check, SaysWhatIsWrongWithTheGatheringOfParameters) {
  const auto changed = [](std::string_view from, std::string_view to) {
    return violation_of(with(with(std::string(kGathered), from, to), from, to));
  };
  EXPECT_EQ(violation_of(kGathered), "");
  EXPECT_EQ(
      changed("GF0.0[3] ", ""),
      "rank 0, compute, step 0, F0.0[3]: needs the parameters for the forward of stage 0 from layer 3 for "
      "micro-batch 0, which nothing makes");
  EXPECT_EQ(
      changed("GB0.0[1] ", ""),
      "rank 0, compute, step 0, B0.0[1]: needs the parameters for the backward of stage 0 from layer 1 for "
      "micro-batch 0, which nothing makes");
  // The place that the backward of layer 1 needs is that of layer 3, whose forward has not run.
  EXPECT_THAT(changed("GF0.0[3] GB0.0[1]", "GB0.0[1] GF0.0[3]"), HasSubstr("waits for this in turn"));
  // A forward through all layers at once would need the place of layer 1 for layer 3.
  EXPECT_THAT(violation_of(with(kGathered, "F0.0[0] F0.0[1] F0.0[2] F0.0[3]", "F0.0")), HasSubstr("F0.0"));
  EXPECT_EQ(changed("AG0[0]", "AG0[0:2]"),
            "rank 0, data, step 0, AG0[0:2]: layer 1 is gathered for every micro-batch, by GF and GB");
  EXPECT_EQ(changed("AG0[0]", "GF0.0[0]"),
            "rank 0, data, step 0, GF0.0[0]: layer 0 is gathered for the whole step, by AG");
  EXPECT_EQ(changed("GB0.0[1]", "GB0.0[1] GB0.0[2]"),
            "rank 0, data, step 0, GB0.0[2]: the place of layer 2 still has its parameters");
  EXPECT_EQ(violation_of(with(kGathered, "sharding parameters", "sharding gradients")),
            "rank 0, data, step 0, GF0.0[1]: parameters are not sharded: they are not gathered for a "
            "micro-batch");
}

constexpr std::string_view kRounds = R"(plenum-schedule 1
layers 3
micro-batches 4
sharding gradients
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0[2] B0.0[1] B0.0[0] F0.1 B0.1[2] B0.1[1] B0.1[0] NS0 U0
0 data: RR0.0[2] RR0.0[1] RR0.0[0] RR0.1[2] RR0.1[1] RR0.1[0] N AG0
1 compute: F0.2 B0.2[2] B0.2[1] B0.2[0] F0.3 B0.3[2] B0.3[1] B0.3[0] NS0 U0
1 data: RR0.0[2] RR0.0[1] RR0.0[0] RR0.1[2] RR0.1[1] RR0.1[0] N AG0
)";

std::string rounds_with(std::string_view from, std::string_view to) {
  return violation_of(with(with(std::string(kRounds), from, to), from, to));
}

TEST(Check, WantsGradientsToLeaveTheirPlacesBeforeTheNextComeThere) {
  EXPECT_EQ(violation_of(kRounds), "");
  // A backward through all buckets at once would need the place of the first for the third.
  EXPECT_THAT(violation_of(with(kRounds, "B0.0[2] B0.0[1] B0.0[0]", "B0.0")), HasSubstr("B0.0"));
  // The second round cannot come before the first: its backward waits for that.
  EXPECT_THAT(rounds_with("RR0.0[2] RR0.0[1] RR0.0[0] RR0.1[2] RR0.1[1] RR0.1[0]",
                          "RR0.1[2] RR0.0[2] RR0.0[1] RR0.0[0] RR0.1[1] RR0.1[0]"),
              HasSubstr("waits for this in turn"));
  EXPECT_EQ(
      rounds_with("RR0.1[0] N", "N"),
      "rank 0, compute, step 0, NS0: needs the reduced gradient of stage 0 from layer 0 for micro-batch "
      "1, which nothing makes");
  EXPECT_EQ(
      rounds_with("RR0.1[0] N", "RR0.2[0] N"),
      "rank 0, data, step 0, RR0.2[0]: the rank runs stage 0 for fewer micro-batches: it has no round 2");
  EXPECT_EQ(rounds_with("RR0.1[0] N", "RS0[0] N"),
            "rank 0, data, step 0, RS0[0]: gradients are sharded: they are reduced by RR");
}

TEST(Check, KeepsToTheSettings) {
  EXPECT_EQ(
      replicas_with("0 data: AR0[1]", "0 data: RS0[1]"),
      "rank 0, data, step 0, RS0[1]: the schedule says nothing of sharding: gradients are reduced by AR");
  EXPECT_EQ(sharded_with("RS0 N AG0", "AR0 N AG0"),
            "rank 0, data, step 0, AR0: the optimizer is sharded: gradients are reduced by RS, not AR");
  EXPECT_EQ(
      violation_of(with(with(kSharded, "N AG0", "N"), "N AG0", "N")),
      "rank 0, compute, step 0, F0.0: needs the gathered parameters of layer 0 of the step before, which "
      "nothing makes");
  EXPECT_EQ(replicas_with("0 data: AR0[1] AR0[0] N", "0 data: AR0[1] AR0[0] TR N"),
            "rank 0, data, step 0, TR: the schedule has no tied parameter");
  EXPECT_EQ(replicas_with("U0", "P0 U0"), "rank 0, compute, step 0, P0: the schedule has no preconditioner");
  EXPECT_EQ(kfac_with("P0~2 NS0", "SA0 P0~2 NS0"),
            "rank 0, compute, step 0, SA0: the preconditioner is not shampoo");
  EXPECT_EQ(violation_of(with(kShampoo, "SA0", "KA0.0[0]/0 SA0")),
            "rank 0, compute, step 0, KA0.0[0]/0: the preconditioner is not kfac");
}

TEST(Check, FollowsCurvatureOverSteps) {
  EXPECT_EQ(
      kfac_with("KA0.0[0]/1 P0", "P0"),
      "rank 0, data, step 1, KR0[0]/1~1: needs curvature A of layer 0, factor 1, for micro-batch 0 of the "
      "step before, which nothing makes in that step");
  EXPECT_EQ(
      kfac_with("KB0.0[0]/1~1", "KB0.0[0]/1~1 KB0.0[0]/0~1"),
      "rank 0, compute, step 1, KB0.0[0]/0~1: makes curvature B of layer 0, factor 0, for micro-batch 0 a "
      "second time, after KB0.0[0]/0 on rank 0");
  EXPECT_EQ(kfac_with("KI0[0]/1~1 P0~1", "KI0[0]/1~1 KI0[0]/0~1 P0~1"),
            "rank 1, compute, step 1, KI0[0]/0~1: factor 0 of layer 0 belongs to rank 0");
  EXPECT_EQ(
      kfac_with("KI0[0]/0#1/2~1", "KI0[0]/0#1/3~1"),
      "rank 0, compute, step 1, KI0[0]/0#1/3~1: is cut into 3 pieces, but the others of this inverse into 2");
  EXPECT_EQ(
      kfac_with("KI0[0]/0#0/2~1 B0.0 KI0[0]/0#1/2~1", "B0.0 KI0[0]/0#1/2~1"),
      "rank 0, compute, step 1, KI0[0]/0#1/2~1: needs piece 0 of the inverse of layer 0, factor 0 of the "
      "step before, which nothing makes in that step");
  EXPECT_EQ(kfac_with("P0~2", "P0~1"),
            "rank 0, compute, step 0, P0~1: needs the inverse of layer 0, factor 0 of the step before, which "
            "nothing makes in that step");
  EXPECT_EQ(
      kfac_with("P0~2 NS0", "NS0"),
      "rank 0, data, step 0, PG0: needs the preconditioned gradient of layer 0, which nothing makes in that "
      "step");
  EXPECT_EQ(kfac_with("PG0 ", ""), "rank 1, data, step 0, PG0: rank 0 does not take part in this step");
  EXPECT_EQ(
      violation_of(with(kShampoo, "SR0[0]/0~1 F0.0 B0.0 NS0 SA0", "F0.0 SR0[0]/0 B0.0 NS0 SA0")),
      "rank 0, compute, step 0, SR0[0]/0: needs the accumulated factor of layer 0, which SA0 on rank 0 makes "
      "only later in the same lane");
}

TEST(Check, GivesTheActivationHighWaterMark) {
  const auto peaks = [](std::string_view name, std::size_t depth, std::size_t num_micro_batches,
                        Recomputation recomputation = Recomputation::None) {
    return check(generator_named(name).generate({.depth = depth,
                                                 .num_micro_batches = num_micro_batches,
                                                 .stage_layers = {3},
                                                 .recomputation = recomputation}))
        .peak_activation_layers;
  };
  EXPECT_EQ(peaks("gpipe", 3, 8), (std::vector<std::size_t>{24, 24, 24}));
  EXPECT_EQ(peaks("1f1b", 3, 8), (std::vector<std::size_t>{9, 6, 3}));
  EXPECT_EQ(peaks("1f1b", 3, 2), (std::vector<std::size_t>{6, 6, 3}));
  EXPECT_EQ(peaks("gpipe", 3, 8, Recomputation::Full), (std::vector<std::size_t>{1, 1, 1}));
}

TEST(Check, CountsWhatCurvatureKeepsApart) {
  // Rank 0 keeps micro-batch 0 of step 0 until the curvature in step 1, rank 1 likewise.
  const CheckResult result = check(parse_schedule(test::kKfacSchedule, "test"));
  EXPECT_EQ(result.peak_activation_layers, (std::vector<std::size_t>{1, 1}));
  EXPECT_EQ(result.peak_kept_layers, (std::vector<std::size_t>{1, 1}));
  const std::string late = with(test::kKfacSchedule, "KB0.0[0]/1~1 F0.0", "F0.0 KB0.0[0]/1~1");
  EXPECT_EQ(check(parse_schedule(late, "test")).peak_kept_layers, (std::vector<std::size_t>{2, 1}));
  const std::string shared = R"(plenum-schedule 1
layers 1
micro-batches 1
preconditioner kfac
factors 1
staleness 4
rank 0 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0~2 KB0.0[0]/0~3 KI0[0]/0~3 P0~4 NS0 U0
0 data: N
)";
  EXPECT_EQ(check(parse_schedule(shared, "test")).peak_kept_layers, (std::vector<std::size_t>{4}));
  EXPECT_EQ(violation_of(shared), "");
}

TEST(Check, LetsExchangedDataArriveAStepAhead) {
  const std::string text = with(kPipeline, "0 pipe", "0 copy: X\n1 copy: X\n0 pipe");
  EXPECT_EQ(violation_of(text), "");
  EXPECT_EQ(violation_of(with(text, "1 copy: X\n", "")),
            "rank 0, copy, step 0, X: rank 1 does not take part in this step");
}

TEST(Check, WantsCurvatureOfAnAgeToBeInvertedAtThatAge) {
  const std::string text = R"(plenum-schedule 1
layers 1
micro-batches 2
preconditioner kfac
factors 1
staleness 2
rank 0 holds 0
rank 1 holds 0
0 compute: F0.0 B0.0 KA0.0[0]/0 KB0.0[0]/0 P0~2 NS0 U0 KI0[0]/0~2
0 data: KR0[0]/0~2 AR0 PG0 N
1 compute: F0.1 B0.1 KA0.1[0]/0 KB0.1[0]/0 P0~2 NS0 U0
1 data: KR0[0]/0~2 AR0 PG0 N
)";
  EXPECT_EQ(violation_of(text),
            "rank 0, compute, step 0, P0~2: needs the inverse of layer 0, factor 0 of 2 steps before, which "
            "KI0[0]/0~2 on rank 0 makes only later in the same lane");
  EXPECT_EQ(violation_of(with(text, "P0~2 NS0 U0 KI0[0]/0~2", "KI0[0]/0~2 P0~2 NS0 U0")), "");
}

TEST(Check, RecomputesLayersInAnyOrderFromTheirKeptInputs) {
  EXPECT_EQ(sharded_with("RC0.0 B0.0", "RC0.0[1] B0.0[1] RC0.0[0] B0.0[0]"), "");
  EXPECT_EQ(sharded_with("RC0.0 B0.0", "RC0.0[0] RC0.0[1] B0.0"), "");
  EXPECT_EQ(sharded_with("F0.0 RC0.0 B0.0", "F0.0[0] F0.0[1] RC0.0[1] B0.0[1] RC0.0[0] B0.0[0]"), "");
  EXPECT_EQ(sharded_with("F0.0 RC0.0 B0.0", "F0.0[0] RC0.0[1] F0.0[1] B0.0[1] RC0.0[0] B0.0[0]"),
            "rank 0, compute, step 0, RC0.0[1]: needs the output of stage 0 from layer 1 for micro-batch 0, "
            "which F0.0[1] on rank 0 makes only later in the same lane");
}

TEST(Check, RecomputesALayerWhereverForwardsAreCut) {
  // Only micro-batch 0's forward is cut at layer 1; that of micro-batch 1 keeps the input of the layer all
  // the same.
  constexpr std::string_view text = R"(plenum-schedule 1
layers 2
micro-batches 2
recompute full
rank 0 holds 0
0 compute: F0.0[0] F0.0[1] F0.1 RC0.0[1] B0.0[1] RC0.0[0] B0.0[0] RC0.1[1] B0.1[1] RC0.1[0] B0.1[0] NS0 U0
0 data: N
)";
  EXPECT_EQ(violation_of(text), "");
  EXPECT_EQ(violation_of(with(text, "RC0.1[1] B0.1[1]", "B0.1[1] RC0.1[1]")),
            "rank 0, compute, step 0, B0.1[1]: needs the saved activations of stage 0 from layer 1 for "
            "micro-batch 1, which RC0.1[1] on rank 0 makes only later in the same lane");
}

TEST(Check, SaysWhatARecomputationLacksThatNoForwardBegins) {
  constexpr std::string_view text = R"(plenum-schedule 1
layers 2
micro-batches 1
recompute full
rank 0 holds 0
0 compute: F0.0[1] RC0.0[0] RC0.0[1] B0.0 NS0 U0
0 data: N
)";
  EXPECT_EQ(violation_of(text),
            "rank 0, compute, step 0, F0.0[1]: needs the output of stage 0 from layer 0 for micro-batch 0, "
            "which nothing makes");
  EXPECT_EQ(violation_of(with(text, "F0.0[1] RC0.0[0]", "RC0.0[0] F0.0[1]")),
            "rank 0, compute, step 0, RC0.0[0]: needs the output of stage 0 from layer 0 for micro-batch 0, "
            "which nothing makes");
}

TEST(Check, NamesTheInverseThatAPreconditionerLacks) {
  constexpr std::string_view text = R"(plenum-schedule 1
layers 1
micro-batches 1
preconditioner kfac
factors 6
rank 0 holds 0
0 compute: F0.0 B0.0 P0 NS0 U0
0 data: N
)";
  EXPECT_EQ(violation_of(text),
            "rank 0, compute, step 0, P0: needs the inverse of layer 0, factor 0, which nothing makes");
}

}  // namespace
}  // namespace plenum::schedule
