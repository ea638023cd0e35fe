#include "plenum/train/study_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/describe/bert.h"
#include "plenum/train/study_answers.h"
#include "plenum/train/study_report.h"

namespace plenum::train {
namespace {

using testing::HasSubstr;
using testing::Not;

/// With steps that do not count, of which all would be wrong.
std::vector<double> after_others(std::vector<double> steps) {
  std::vector<double> all(StudyResult::kNumBefore, 1000);
  all.insert(all.end(), steps.begin(), steps.end());
  return all;
}

StudyResult result_of(const std::string& arguments, double predicted, std::vector<double> measured) {
  StudyResult result{.configuration = study_configuration(arguments), .name = arguments};
  result.name = result.configuration.name();
  result.parameters = 4'000'000;
  result.width = 128;
  result.prediction = {.num_steps = StudyResult::kNumBefore + 2,
                       .step_seconds = after_others({predicted, predicted}),
                       .breakdown = {},
                       .skew_seconds = 0.001,
                       .planned_bytes = 90'000'000,
                       .peak_bytes = 100'000'000};
  for (const double seconds : measured)
    result.runs.push_back({.step_seconds = after_others({0.9 * seconds, 1.1 * seconds}),
                           .step_tokens = after_others({500, 700}),
                           .planned_bytes = 90'000'000,
                           .used_bytes = 80'000'000,
                           .exposed_seconds = 0.002,
                           .skew_seconds = 0.003});
  return result;
}

const std::string kWork = "--model bert-tiny --layout unpadded --global-batch 600tok";

TEST(StudyResult, FirstStepsDoNotCount) {
  const StudyResult result = result_of(kWork, 0.1, {0.2});
  EXPECT_DOUBLE_EQ(result.predicted_step(), 0.1);
  EXPECT_DOUBLE_EQ(result.measured_step(), 0.2);
  EXPECT_DOUBLE_EQ(result.step_error(), -0.5);
  EXPECT_DOUBLE_EQ(result.tokens_per_step(), 600);
  EXPECT_DOUBLE_EQ(result.memory_error(), 0.25);
}

TEST(StudyResult, RunsAreAveragedStepByStep) {
  const StudyResult result = result_of(kWork, 0.1, {0.09, 0.11});
  EXPECT_NEAR(result.measured_step(), 0.1, 1e-12);
  EXPECT_NEAR(result.spread(), 0.2, 1e-12);
  EXPECT_THAT(result.measured_steps(),
              testing::ElementsAre(testing::DoubleNear(0.09, 1e-12), testing::DoubleNear(0.11, 1e-12)));
  EXPECT_NEAR(result.step_r_squared(), 0, 1e-9);
  EXPECT_EQ(result_of(kWork, 0.1, {0.1}).spread(), 0);
}

TEST(StudyResult, RSquaredIsOfStepsThatDifferInSize) {
  StudyResult result = result_of(kWork, 0.1, {0.2});
  EXPECT_FALSE(result.has_steps_of_different_sizes());
  EXPECT_THAT(study_markdown({.results = {result}}), Not(HasSubstr("R² -")));
  // Predicted at half of what they take, in the right proportion.
  result.prediction.step_seconds = after_others({0.09, 0.11});
  EXPECT_TRUE(result.has_steps_of_different_sizes());
  EXPECT_NEAR(result.scaled_step_r_squared(), 1, 1e-12);
  EXPECT_LT(result.step_r_squared(), 0);
  EXPECT_FALSE(result.attainable_step_r_squared());
}

TEST(StudyResult, ARunThatStoppedEarlyShortensTheComparison) {
  StudyResult result = result_of(kWork, 0.1, {0.2, 0.2});
  result.runs[1].step_seconds.pop_back();
  EXPECT_EQ(result.measured_steps().size(), 1);
  EXPECT_EQ(result.predicted_steps().size(), 1);
}

TEST(StudyResult, CommunicationIsExposedWhereNothingIsComputed) {
  // Rank 0 computes in [0, 2] and [3, 4], and communicates in [1, 3.5] and [3.2, 5]: exposed for 1 + 1.
  const std::vector<LaneAction> step = {{.rank = 0, .is_computed = true, .start = 0, .end = 2},
                                        {.rank = 0, .is_computed = true, .start = 3, .end = 4},
                                        {.rank = 0, .start = 1, .end = 3.5},
                                        {.rank = 0, .start = 3.2, .end = 5},
                                        {.rank = 1, .is_computed = true, .start = 0, .end = 5},
                                        {.rank = 1, .start = 1, .end = 2}};
  EXPECT_DOUBLE_EQ(exposed_communication(step), 1);
  EXPECT_DOUBLE_EQ(exposed_communication({}), 0);
}

TEST(StudyResult, SkewIsBetweenTheEndsOfBackwards) {
  const std::vector<LaneAction> step = {
      {.rank = 0, .is_computed = true, .is_backward = true, .start = 0, .end = 2},
      {.rank = 0, .is_computed = true, .is_backward = true, .start = 2, .end = 3},
      {.rank = 0, .is_computed = true, .start = 3, .end = 9},
      {.rank = 1, .is_computed = true, .is_backward = true, .start = 0, .end = 4.5}};
  EXPECT_DOUBLE_EQ(backward_skew(step), 1.5);
  EXPECT_DOUBLE_EQ(backward_skew({}), 0);
}

Study study_of(std::vector<StudyResult> results) {
  Study study;
  study.machine = "a machine";
  study.grid = "grid";
  study.results = std::move(results);
  return study;
}

TEST(StudyReport, ShowsEveryConfigurationAndWhatWentWrong) {
  StudyResult failed = result_of(kWork + " --ranks 4", 0.1, {});
  failed.failure = "plenum train ended with signal 9";
  Study study =
      study_of({result_of(kWork, 0.3, {0.2}), result_of(kWork + " --ranks 2", 0.1, {0.25}), failed});
  study.left_out = {"--tp 3: refused"};
  const std::string text = study_markdown(study);
  EXPECT_THAT(text, HasSubstr("300.00 | 200.00 | +50.0 % |"));
  EXPECT_THAT(text, HasSubstr("100.00 | 250.00 | -60.0 % |"));
  EXPECT_THAT(text, HasSubstr("mean error 55.0 %"));
  EXPECT_THAT(text, HasSubstr("regret over 1 works: 25.0 % in the mean"));
  EXPECT_THAT(text, HasSubstr("signal 9"));
  EXPECT_THAT(text, HasSubstr("--tp 3: refused"));
  const nlohmann::json numbers = nlohmann::json::parse(study_json(study));
  ASSERT_EQ(numbers["configurations"].size(), 3);
  EXPECT_DOUBLE_EQ(numbers["configurations"][1]["step"]["error"], -0.6);
  EXPECT_EQ(numbers["configurations"][2]["failure"], failed.failure);
  EXPECT_EQ(numbers["step_errors"]["count"], 2);
  EXPECT_DOUBLE_EQ(numbers["regrets"][0]["regret"], 0.25);
}

TEST(StudyReport, OfNothingMeasuredSaysSo) {
  StudyResult failed = result_of(kWork, 0.1, {});
  failed.failure = "no";
  const Study study = study_of({failed});
  EXPECT_THAT(study_markdown(study), HasSubstr("failed: "));
  EXPECT_TRUE(nlohmann::json::accept(study_json(study)));
  for (const std::string& plot : {step_time_plot(study), memory_plot(study), single_steps_plot(study)})
    EXPECT_THAT(plot, testing::EndsWith("</svg>\n"));
}

TEST(StudyReport, PlotsHaveAMarkForEveryConfiguration) {
  Study study = study_of({result_of(kWork, 0.3, {0.2}), result_of(kWork + " --ranks 2", 0.1, {0.25}),
                          result_of(kWork + " --ranks 4", 0.1, {0.1})});
  for (std::size_t i = 0; i < 2; ++i) study.results[i].prediction.step_seconds = after_others({0.2, 0.3});
  const auto num_marks = [](const std::string& plot) {
    std::size_t count = 0;
    for (std::size_t at = plot.find("</title></circle>"); at != std::string::npos;
         at = plot.find("</title></circle>", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(num_marks(step_time_plot(study)), 3);
  EXPECT_EQ(num_marks(memory_plot(study)), 3);
  // Two steps count of each whose steps differ.
  EXPECT_EQ(num_marks(single_steps_plot(study)), 4);
}

TEST(StudyAnswers, ComparesWaysToHoldTheModelOnTheSameRanks) {
  const std::string text = parallelism_answer({result_of(kWork + " --ranks 2", 0.1, {0.2}),
                                               result_of(kWork + " --ranks 2 --pp 2", 0.1, {0.3}),
                                               result_of(kWork + " --ranks 4 --pp 2", 0.1, {0.7})});
  EXPECT_THAT(text, HasSubstr("dp 1 x tp 1 x pp 2 | 100.00 | 300.00 | 1.50 |"));
  EXPECT_THAT(text, Not(HasSubstr("700.00"))) << "alone on its ranks";
  EXPECT_EQ(parallelism_answer({result_of(kWork, 0.1, {0.2}), result_of(kWork + " --pp 1", 0.1, {0.2})}), "");
}

TEST(StudyAnswers, OrdersBucketsBySize) {
  const std::string text =
      bucket_answer({result_of(kWork + " --ranks 2", 0.1, {0.2}),
                     result_of(kWork + " --ranks 2 --bucket-bytes 9000000", 0.1, {0.3}),
                     result_of(kWork + " --ranks 2 --bucket-bytes 1000000", 0.1, {0.4})});
  // The measured steps of 1, 9 and 25 MB.
  ASSERT_NE(text.find("400.00"), std::string::npos) << text;
  EXPECT_LT(text.find("400.00"), text.find("300.00"));
  EXPECT_LT(text.find("300.00"), text.find("200.00"));
  EXPECT_THAT(text, HasSubstr("| 2.00 |"));
}

TEST(StudyAnswers, MemoryIsAMultipleOfOneRanks) {
  StudyResult two = result_of(kWork + " --ranks 2 --shard optimizer", 0.1, {0.2});
  two.prediction.peak_bytes = 150'000'000;
  two.runs[0].used_bytes = 160'000'000;
  const std::string text = memory_answer({result_of(kWork, 0.1, {0.2}), two});
  EXPECT_THAT(text, HasSubstr("optimizer sharded | 150 MB | 160 MB | 1.50 | 2.00 |"));
  EXPECT_EQ(memory_answer({two}), "");
  const std::vector<StudyResult> both = {result_of(kWork, 0.1, {0.2}), two};
  EXPECT_THAT(study_answers(both, StudyEngine::Threads), HasSubstr("## Memory"));
  EXPECT_THAT(study_answers(both, StudyEngine::Mpi), Not(HasSubstr("## Memory")));
}

TEST(StudyAnswers, LayoutsAreComparedByTokensWithoutPadding) {
  StudyResult padded = result_of("--model bert-tiny --layout padded --global-batch 600tok", 0.1, {0.4});
  const std::string text = layout_answer({padded, result_of(kWork, 0.1, {0.2})});
  EXPECT_THAT(text, HasSubstr("| unpadded | 6.0 | 3.0 | 2.00 |"));
  EXPECT_EQ(layout_answer({padded}), "");
}

TEST(StudyAnswers, LinksSayWhichParallelismIsFaster) {
  const std::string link = " --emulate-link latency=1ms,bandwidth=1MB/s";
  const std::string text = link_answer({result_of(kWork + " --ranks 2" + link, 0.3, {0.2}),
                                        result_of(kWork + " --ranks 2 --pp 2" + link, 0.1, {0.4})});
  EXPECT_THAT(text, HasSubstr("| pipeline | data |"));
  EXPECT_THAT(text, HasSubstr(fmt::format("| {:.2f} |", 600 / (4e6 / 128))));
}

TEST(StudyAnswers, WaitingIsOfDataParallelRanks) {
  const std::string text =
      waiting_answer({result_of(kWork, 0.1, {0.2}), result_of(kWork + " --ranks 2", 0.1, {0.2}),
                      result_of(kWork + " --ranks 2 --pp 2", 0.1, {0.2})});
  EXPECT_THAT(text, HasSubstr("| 1.00 | 3.00 | 1.0 % | 1.5 % |"));
  EXPECT_THAT(text, Not(HasSubstr("pp 2")));
}

TEST(StudyAnswers, FullPacksOfOneLengthWaitForNobody) {
  // All sequences fill a pack: neither waits, and neither is padded.
  packing::LengthHistogram lengths;
  lengths.counts.assign(65, 0);
  lengths.counts[64] = 1000;
  const std::string text = scale_answer(describe::describe_bert({}), lengths);
  EXPECT_THAT(text, HasSubstr("| 4 | 2048 | +0.0 % | +0.0 % | +0.0 % |"));
  // Half of them are half as long: packs are full, and ranks that have more long ones are waited for.
  lengths.counts[32] = 1000;
  const std::string mixed = scale_answer(describe::describe_bert({}), lengths);
  EXPECT_THAT(mixed, HasSubstr("are 100.0 % full"));
  EXPECT_THAT(mixed, Not(HasSubstr("| 4 | 2048 | +0.0 %")));
}

}  // namespace
}  // namespace plenum::train
