#include "plenum/report/read_run.h"

#include <chrono>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>

#include "plenum/report/run_figures.h"

#include "tests/report/run_directory_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::report {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(MadeRuns, AreReadAsTheyWereWritten) {
  const RunRecord run = read_run(make("run"));
  EXPECT_THAT(run.faults, IsEmpty());
  EXPECT_EQ(run.name, "run");
  ASSERT_EQ(run.steps.size(), 100U);
  EXPECT_EQ(run.steps.loss.front(), 9.95);
  EXPECT_EQ(run.steps.num_steps, 100);
  EXPECT_THAT(run.steps.skipped, ElementsAre(7));
  ASSERT_EQ(run.evaluations.size(), 2U);
  EXPECT_EQ(run.evaluations[1].value("mlm_accuracy"), 0.4);
  EXPECT_EQ(run.number("/layout/ranks"), 2);
  EXPECT_EQ(run.text("/machine/cpu"), "A <fast> processor");
  EXPECT_TRUE(run.is_finished());
  EXPECT_EQ(state_of(run), "finished");
}

TEST_F(MadeRuns, ComeToTheseFigures) {
  const RunFigures figures = figures_of(read_run(make("run")));
  EXPECT_EQ(figures.tokens, 90'000);
  EXPECT_EQ(figures.num_skipped, 1U);
  EXPECT_NEAR(figures.loss.value(), 10 - 0.05 * 90.5, 1e-9);
  EXPECT_EQ(figures.best_loss, 5.25);
  EXPECT_EQ(figures.best_step, 100);
  EXPECT_EQ(figures.accuracy, 0.4);
  EXPECT_EQ(figures.accuracy_name, "mlm accuracy");
  EXPECT_NEAR(figures.tokens_per_second.value(), 1800, 1e-9);
  EXPECT_NEAR(figures.peak_share.value(), 0.5, 1e-9);                      // 1e9 in half a second, of 4e9
  EXPECT_NEAR(figures.padding.value(), 0.1, 1e-12);                        // 100 rows of 1000
  EXPECT_NEAR(figures.padding_avoided.value(), 1 - 1000.0 / 2048, 1e-12);  // 4 sequences of 512
  EXPECT_EQ(figures.used_bytes, 4e6);
  EXPECT_NEAR(figures.wall_seconds, 60, 1e-9);
}

TEST_F(MadeRuns, DamagedLinesAreCountedAndLeftOut) {
  const std::string run = make("run");
  directory_.write("run/metrics.jsonl", steps(3) + "{\"step\":4,\"loss\":\nnot JSON\n[1]\n{\"loss\":2}\n" +
                                            step_line(5, 8) + "{\"step\":6,\"lo");
  const RunRecord read = read_run(run);
  EXPECT_THAT(read.steps.step, ElementsAre(1, 2, 3, 5));  // what has no end yet is no damage
  EXPECT_THAT(read.faults, ElementsAre("metrics.jsonl: 4 lines could not be read and are left out"));
}

TEST_F(MadeRuns, LossesThatAreNotFiniteAreNumbersThatAreNone) {
  const std::string run = make("run");
  directory_.write("run/metrics.jsonl", "{\"step\":1,\"loss\":null,\"seconds\":0.5}\n");
  const RunRecord read = read_run(run);
  EXPECT_THAT(read.faults, IsEmpty());
  ASSERT_EQ(read.steps.size(), 1U);
  EXPECT_TRUE(std::isnan(read.steps.loss.front()));
  EXPECT_TRUE(std::isnan(read.steps.learning_rate.front()));
}

TEST_F(MadeRuns, StepsThatWereTrainedAgainCountOnce) {
  const std::string run = make("run");
  directory_.write("run/metrics.jsonl", steps(8) + step_line(6, 3) + step_line(7, 2));
  const RunRecord read = read_run(run);
  EXPECT_THAT(read.steps.step, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(read.steps.loss[5], 3);
  EXPECT_THAT(read.steps.skipped, ElementsAre(7));
}

TEST_F(MadeRuns, OfEarlierVersionsLackEventsAndSayNothingOfThem) {
  const std::string run = make("run");
  for (const char* name : {"events.jsonl", "evaluations.jsonl", "config.toml"})
    std::filesystem::remove(directory_ / ("run/" + std::string(name)));
  const RunRecord read = read_run(run);
  EXPECT_EQ(read.beginning(), nullptr);
  EXPECT_EQ(read.number("/layout/ranks"), std::nullopt);
  EXPECT_EQ(figures_of(read).padding_avoided, std::nullopt);
  EXPECT_EQ(read.steps.size(), 100U);
}

TEST_F(MadeRuns, FilesThatCannotBeReadAreNamed) {
  const std::string run = make("run");
  directory_.write("run/config.toml", "[run\n");
  directory_.write("run/step.json", "{\"step\":3}");
  directory_.write("run/events.jsonl", begin_line(0) + "{\"step\":1}\n");
  const RunRecord read = read_run(run);
  EXPECT_THAT(read.faults, testing::UnorderedElementsAre(
                               HasSubstr("config.toml"), HasSubstr("step.json could not be read"),
                               "events.jsonl: 1 line could not be read and is left out"));
}

TEST_F(MadeRuns, ThatWereKilledSaySo) {
  const std::string run = make("run", 40);
  directory_.write("run/events.jsonl", begin_line(0));
  EXPECT_EQ(state_of(read_run(run)), "killed");
  directory_.write("run/events.jsonl",
                   begin_line(0) + "{\"step\":40,\"time\":1,\"kind\":\"stop\",\"text\":\"\"}\n");
  EXPECT_EQ(state_of(read_run(run)), "stopped");
  std::filesystem::remove(directory_ / "run/events.jsonl");
  EXPECT_EQ(state_of(read_run(run)), "not training");
}

TEST_F(MadeRuns, TheSpeedOfTheMachineIsThatOfTheProcessThatDidAStep) {
  const std::string run = make("run", 10);
  std::string slower = begin_line(5, "resume");
  slower.replace(slower.find("4e9"), 3, "2e9");
  directory_.write("run/events.jsonl", begin_line(0) + slower);
  const std::vector<double> flops = product_flops_of_steps(read_run(run));
  EXPECT_EQ(flops[4], 4e9);
  EXPECT_EQ(flops[5], 2e9);
}

TEST_F(MadeRuns, ThatFineTuneHaveTheirBestEvaluationByTheirMetric) {
  const std::string run = make("run");
  const auto line = [](int step, double loss, const std::string& scores) {
    return fmt::format("{{\"step\":{},\"loss\":{},{},\"seconds\":1}}\n", step, loss, scores);
  };
  directory_.write("run/evaluations.jsonl", line(10, 0.4, "\"accuracy\":0.7,\"f1_macro\":0.5") +
                                                line(20, 0.5, "\"accuracy\":0.8,\"f1_macro\":0.6") +
                                                line(30, 0.6, "\"accuracy\":0.7,\"f1_macro\":0.6") +
                                                line(40, 0.1, "\"accuracy\":0.9,\"f1_macro\":null"));
  directory_.write("run/config.toml", "[task]\nmetric = \"f1_macro\"\n");
  RunFigures figures = figures_of(read_run(run));
  EXPECT_EQ(figures.best_step, 20);
  EXPECT_EQ(figures.best_loss, 0.5);
  EXPECT_EQ(figures.accuracy, 0.6);
  EXPECT_EQ(figures.accuracy_name, "f1 macro");
  directory_.write("run/config.toml", "[task]\nmetric = \"loss\"\n");
  figures = figures_of(read_run(run));
  EXPECT_EQ(figures.best_step, 40);
  EXPECT_EQ(figures.accuracy_name, "accuracy");
}

TEST_F(MadeRuns, ThatHaveWrittenNothingForLongAreSilent) {
  const std::string run = make("run");
  std::filesystem::remove(directory_ / "run/metrics.jsonl");
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"run/lock", "run/events.jsonl"})
    std::filesystem::last_write_time(directory_ / name, hour_ago);
  EXPECT_GT(read_run(run).silent_seconds, 3500);
  directory_.write("run/events.jsonl", begin_line(0));
  EXPECT_LT(read_run(run).silent_seconds, 3500);
}

TEST_F(MadeRuns, NumbersThatNoRunHasAreDamage) {
  const std::string run = make("run");
  directory_.write("run/metrics.jsonl", steps(2) + "{\"step\":1e300,\"skipped\":true}\n{\"step\":-1}\n");
  directory_.write("run/events.jsonl", begin_line(0) + "{\"step\":-4,\"kind\":\"skipped\"}\n");
  const RunRecord read = read_run(run);
  EXPECT_EQ(read.steps.size(), 2U);
  EXPECT_THAT(read.faults, ElementsAre("metrics.jsonl: 2 lines could not be read and are left out",
                                       "events.jsonl: 1 line could not be read and is left out"));
}

TEST_F(MadeRuns, WhatIsNoRunIsRefused) {
  std::filesystem::create_directory(directory_ / "none");
  test::expect_user_error([&] { read_run(directory_ / "none"); },
                          "none is not the directory of a run; name one that plenum train");
  directory_.write("seeds/seeds.toml", "");
  test::expect_user_error([&] { read_run(directory_ / "seeds"); }, "holds runs of several seeds; name them");
  test::expect_user_error([&] { read_run(directory_ / std::string(300, 'x')); }, "cannot read");
}

}  // namespace
}  // namespace plenum::report
