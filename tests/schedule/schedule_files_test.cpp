#include <gtest/gtest.h>

#include "plenum/schedule/generate/generator.h"
#include "plenum/schedule/text/parse_schedule.h"
#include "plenum/schedule/text/schedule_json.h"
#include "plenum/schedule/text/schedule_text.h"

#include "tests/support/expect_user_error.h"

namespace plenum::schedule {
namespace {

using test::expect_user_error;
using test::user_error_of;

constexpr std::string_view kTwoStages = R"(plenum-schedule 1
# two stages, one micro-batch
name by hand
layers 3 2
micro-batches 1
rank 0 holds 0
rank 1 holds 1

0 compute: F0.0 B0.0 U0   # the first
0 pipe: SF0.0 RB0.0
1 compute: F1.0 B1.0[4] B1.0[3] U1
1 pipe: RF1.0 SB1.0
)";

std::string with(std::string_view from, std::string_view to, std::string_view text = kTwoStages) {
  std::string changed(text);
  const std::size_t at = changed.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return changed.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { parse_schedule(text, "s.txt"); });
}

/// A schedule of two steps with everything that a file can hold.
Schedule full_schedule() {
  return parse_schedule_text(R"(plenum-schedule 1
name kfac, steps#2
layers 1
micro-batches 2
sizes 100 28
recompute full
sharding optimizer
preconditioner kfac
factors 1
curvature partial
staleness 3
tied
rank 0 holds 0
rank 1 holds
0 compute: F0.0 F0.1 RC0.0 B0.0 RC0.1 B0.1 KA0.0[0]/0 KA0.1[0]/0~1 P0~2 U0 | KI0[0]/0#0/2~1 KI0[0]/0#1/2~1 U0
0 data: | N
1 data: N |
1 copy: X | X
)",
                             "full");
}

TEST(ScheduleText, ReadsWhatAPersonWrites) {
  const Schedule schedule = parse_schedule_text(kTwoStages, "s.txt");
  EXPECT_EQ(schedule.name, "by hand");
  EXPECT_EQ(schedule.problem.stage_layers, (std::vector<std::uint16_t>{3, 2}));
  EXPECT_EQ(schedule.ranks[1].stages, std::vector<StageId>{StageId{1}});
  EXPECT_EQ(schedule.num_steps(), 1u);
  EXPECT_EQ(schedule.num_actions(), 11u);
  const Action& last_layer = schedule.ranks[1].lane(Lane::Compute).actions()[1];
  EXPECT_EQ(last_layer.first_layer, LayerId{4});
  EXPECT_EQ(schedule.ranks[1].lane(Lane::Copy).num_steps(), 1u);
}

TEST(ScheduleText, ReadsWindowsLinesAndComments) {
  std::string text(kTwoStages);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2)) {
    text.replace(at, 1, "\r\n");
  }
  EXPECT_EQ(parse_schedule_text(text, "s.txt"), parse_schedule_text(kTwoStages, "s.txt"));
}

TEST(ScheduleFiles, GiveBackRounds) {
  for (const Sharding sharding : {Sharding::Gradients, Sharding::Parameters}) {
    const Schedule schedule = generator_named("data-parallel")
                                  .generate({.num_micro_batches = 2,
                                             .num_replicas = 2,
                                             .stage_layers = {5},
                                             .num_buckets = 5,
                                             .sharding = sharding});
    EXPECT_EQ(parse_schedule(print_schedule_text(schedule), "text"), schedule);
    EXPECT_EQ(parse_schedule(print_schedule_json(schedule), "json"), schedule);
  }
}

TEST(ScheduleFiles, GiveBackEveryGeneratedSchedule) {
  for (const Generator& generator : all_generators()) {
    GeneratorOptions options{.depth = generator.is_pipeline() ? 4u : 1u,
                             .num_micro_batches = 8,
                             .num_replicas = 2,
                             .stage_layers = {3},
                             .num_buckets = 2,
                             .sharding = Sharding::Optimizer,
                             .has_tied_parameters = true,
                             .has_tensor_norms = true};
    if (generator.mesh == Mesh::OneRank) options.num_replicas = 1;
    options.micro_batch_sizes.resize(8 * options.num_replicas, 77);
    const Schedule schedule = generator.generate(options);
    EXPECT_EQ(parse_schedule(print_schedule_text(schedule), "text"), schedule) << generator.name;
    EXPECT_EQ(parse_schedule(print_schedule_json(schedule), "json"), schedule) << generator.name;
  }
}

TEST(ScheduleFiles, GiveBackTheHalvesOfATiedParameter) {
  const Schedule schedule =
      generator_named("data-parallel")
          .generate(
              {.num_replicas = 2, .stage_layers = {4}, .has_tied_parameters = true, .has_tied_halves = true});
  EXPECT_EQ(parse_schedule(print_schedule_text(schedule), "text"), schedule);
  EXPECT_EQ(parse_schedule(print_schedule_json(schedule), "json"), schedule);
}

TEST(ScheduleFiles, GiveBackEverySetting) {
  const Schedule schedule = full_schedule();
  EXPECT_EQ(schedule.num_steps(), 2u);
  EXPECT_EQ(schedule.name, "kfac, steps#2");
  EXPECT_EQ(parse_schedule(print_schedule_text(schedule), "text"), schedule);
  EXPECT_EQ(parse_schedule(print_schedule_json(schedule), "json"), schedule);
  EXPECT_EQ(print_schedule_text(parse_schedule_json(print_schedule_json(schedule), "json")),
            print_schedule_text(schedule));
}

TEST(ScheduleFiles, EscapeTheNameInJson) {
  Schedule schedule = full_schedule();
  schedule.name = "a \"quoted\"\nname";
  EXPECT_EQ(parse_schedule(print_schedule_json(schedule), "json"), schedule);
  expect_user_error([&] { print_schedule_text(schedule); }, "does not fit on a line");
}

TEST(ScheduleText, LeavesOutDefaultsAndEmptyLanes) {
  EXPECT_EQ(print_schedule_text(parse_schedule_text(kTwoStages, "s.txt")), R"(plenum-schedule 1
name by hand
layers 3 2
micro-batches 1
rank 0 holds 0
rank 1 holds 1
0 compute: F0.0 B0.0 U0
0 pipe: SF0.0 RB0.0
1 compute: F1.0 B1.0[4] B1.0[3] U1
1 pipe: RF1.0 SB1.0
)");
}

TEST(ScheduleText, NamesTheLineOfAnError) {
  EXPECT_EQ(error_of(with("F0.0 B0.0", "F0.0 Q0.0")).substr(0, 34), "s.txt:9: unknown action 'Q0.0'; th");
  EXPECT_EQ(error_of(with("micro-batches 1", "micro-batches 0")),
            "s.txt:5: the number of micro-batches must be a whole number from 1 to 4294967294: '0'");
  EXPECT_EQ(error_of(with("rank 1 holds 1", "rank 1 holds 0")), "s.txt:9: no rank holds stage 1");
  EXPECT_EQ(error_of(with("rank 1 holds 1", "rank 1 holds 2")),
            "s.txt:7: a stage must be a whole number from 0 to 1: '2'");
  EXPECT_EQ(error_of(with("rank 1 holds", "rank 5 holds")), "s.txt:7: 'rank 1 holds ...' expected: '5'");
  EXPECT_EQ(error_of(with("1 pipe", "7 pipe")),
            "s.txt:12: the row's rank must be a whole number from 0 to 1: '7'");
  EXPECT_EQ(error_of(with("1 pipe", "0 pipe")), "s.txt:12: rank 0 has a row for 'pipe' already");
  EXPECT_EQ(error_of(with("1 pipe", "1 side")),
            "s.txt:12: the lanes are compute, data, pipe and copy: 'side'");
  EXPECT_EQ(error_of(with("0 pipe: SF0.0 RB0.0", "0 pipe: SF0.0 | RB0.0")),
            "s.txt:10: the row has 2 steps, but the first row has 1");
  EXPECT_EQ(error_of(with("plenum-schedule 1", "plenum-schedule 2")),
            "s.txt:1: this is version '2' of the format, not 1");
  EXPECT_EQ(error_of(with("plenum-schedule 1\n", "")),
            "s.txt:2: a schedule begins with the line 'plenum-schedule 1'");
  EXPECT_EQ(error_of(with("name", "nam")), "s.txt:3: unknown setting 'nam'; did you mean 'name'?");
  EXPECT_EQ(error_of(with("micro-batches 1", "micro-batches 1\nmicro-batches 1")),
            "s.txt:6: 'micro-batches' is given twice");
  EXPECT_EQ(error_of(with("layers 3 2", "layers 3 99999")),
            "s.txt:4: a stage's number of layers must be a whole number from 1 to 65534: '99999'");
  EXPECT_EQ(error_of(with("U0", "U1")), "s.txt:9: action 'U1': the rank does not hold this stage");
  EXPECT_EQ(error_of(with("U0", "SF0.0")), "s.txt:9: action 'SF0.0': it belongs into another lane");
  EXPECT_EQ(error_of(with("B0.0", "B0.1")), "s.txt:9: action 'B0.1': there is no such micro-batch");
  EXPECT_EQ(error_of(""), "s.txt:0: the file is empty; a schedule begins with the line 'plenum-schedule 1'");
  EXPECT_EQ(error_of("plenum-schedule 1\n"), "s.txt:1: a schedule needs at least one stage");
}

TEST(ScheduleText, CutsMessagesThatQuoteLongWords) {
  EXPECT_LT(error_of(with("F0.0 B0.0", "F0.0 " + std::string(100'000, 'Q'))).size(), 500u);
}

TEST(ScheduleText, DoesNotBelieveHugeNumbers) {
  EXPECT_EQ(
      error_of(with("micro-batches 1", "micro-batches 4000000000")),
      "s.txt:12: 2 stages and 4000000000 micro-batches need at least 8000000000 actions, but there are 11");
  EXPECT_EQ(error_of(with("micro-batches 1", "micro-batches 1\npreconditioner kfac\nfactors 60000")),
            "s.txt:14: 60000 factors of 5 layers need at least 300000 actions, but there are 11");
}

TEST(ScheduleJson, NamesTheLineOfAnError) {
  const std::string json = print_schedule_json(parse_schedule_text(kTwoStages, "s.txt"));
  const auto error_with = [&](std::string_view from, std::string_view to) {
    return user_error_of([&] { parse_schedule(with(from, to, json), "s.json"); });
  };
  EXPECT_EQ(error_with("F0.0 B0.0", "F0.0 Q0.0").substr(0, 34), "s.json:9: unknown action 'Q0.0'; t");
  EXPECT_EQ(error_with("\"micro_batches\": 1", "\"micro_batches\": 0"),
            "s.json:6: the number of micro-batches must be a whole number from 1 to 4294967294: '0'");
  EXPECT_EQ(error_with("\"micro_batches\": 1", "\"micro_batches\": \"1\""),
            "s.json:6: \"micro_batches\" must be a number");
  EXPECT_EQ(error_with("\"micro_batches\": 1", "\"micro_batch\": 1"),
            "s.json:6: unknown key \"micro_batch\"; did you mean 'micro_batches'?");
  EXPECT_EQ(error_with("\"holds\": [1]", "\"holds\": [0]"), "s.json:7: no rank holds stage 1");
  EXPECT_EQ(error_with("\"holds\": [1]", "\"holds\": [7]"),
            "s.json:11: a stage must be a whole number from 0 to 1: '7'");
  EXPECT_EQ(error_with("\"pipe\": [\"SF0.0", "\"compute\": [\"SF0.0"),
            "s.json:10: \"compute\" is given twice");
  EXPECT_EQ(error_with("\"pipe\": [\"SF0.0", "\"side\": [\"SF0.0"),
            "s.json:10: the lanes are compute, data, pipe and copy: \"side\"");
  EXPECT_EQ(error_with("[\"SF0.0 ", "[\"\", \"SF0.0 "),
            "s.json:10: \"pipe\" of rank 0 has 2 steps, but the first has 1");
  EXPECT_EQ(error_with("\"layers\": [3, 2],", "\"layers\": [3, 2]"), "s.json:6: this is not JSON");
  EXPECT_EQ(error_with("\"version\": 1", "\"version\": 2"), "s.json:3: a schedule has \"version\": 1");
  EXPECT_EQ(error_with("\"layers\": [3, 2]", "\"layers\": [[[[[3]]]]]"),
            "s.json:5: this is nested too deeply");
}

}  // namespace
}  // namespace plenum::schedule
