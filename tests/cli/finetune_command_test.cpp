#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "plenum/io/file.h"
#include "plenum/io/json_file.h"

#include "tests/cli/fine_tuning_program.h"

namespace plenum::cli {
namespace {

using testing::HasSubstr;

const test::MadeTask& classification() {
  static const std::vector<test::MadeTask> kTasks = test::made_tasks();
  return kTasks.front();
}

TEST_F(FineTuningProgram, ShowsMetricsAndWhereTheModelIs) {
  const test::ProgramResult result = plenum(finetune_arguments(classification(), "run"));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("epoch 1: dev loss"));
  EXPECT_THAT(result.errors,
              HasSubstr("chosen: the best checkpoint is that of the best accuracy (--metric)"));
  EXPECT_THAT(result.output, HasSubstr("dev: accuracy "));
  EXPECT_THAT(result.output, HasSubstr("model: run/model, for transformers"));
  const nlohmann::json config = io::read_json_file(directory_ / "run/model/config.json");
  EXPECT_EQ(config["id2label"], (nlohmann::json{{"0", "blame"}, {"1", "praise"}}));
}

TEST_F(FineTuningProgram, ShowsTheResultOfAFinishedRunAsIfNothingBegan) {
  const test::ProgramResult first = plenum(finetune_arguments(classification(), "run"));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const test::ProgramResult again = plenum("finetune --run run");
  EXPECT_EQ(again.exit_code, 0);
  for (const char* part : {"resumes from", "model: ", "steps: ", "learning rate: ", "chosen: "})
    EXPECT_THAT(again.errors, Not(HasSubstr(part)));
  EXPECT_THAT(again.output, testing::StartsWith("nothing remains to be done: 12 steps are trained"));
  EXPECT_EQ(again.output.substr(again.output.find("checkpoint: ")),
            first.output.substr(first.output.find("checkpoint: ")));
}

TEST_F(FineTuningProgram, PrintsJsonWithTheScoresOfTheBestCheckpoint) {
  const test::ProgramResult result =
      plenum(finetune_arguments(classification(), "run") + " --json --quiet --epochs 2");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const nlohmann::json object = nlohmann::json::parse(result.output);
  EXPECT_EQ(object["end"], "finished");
  EXPECT_EQ(object["steps"], 8) << "two epochs of 120 examples in batches of 32";
  EXPECT_EQ(object["model"], "run/model");
  EXPECT_EQ(object["best"]["accuracy"], object["dev"]["scores"]["accuracy"]);
  EXPECT_EQ(object["dev"]["examples"], 60);
}

TEST_F(FineTuningProgram, ResumesWithTheOptionsThatTheRunHas) {
  ASSERT_EQ(plenum(finetune_arguments(classification(), "whole")).exit_code, 0);
  ASSERT_EQ(plenum(finetune_arguments(classification(), "stopped") + " --stop-after 0.001s").exit_code, 85);
  ASSERT_EQ(plenum("finetune --run stopped").exit_code, 0);
  EXPECT_TRUE(io::read_file(directory_ / "whole/model/model.safetensors") ==
              io::read_file(directory_ / "stopped/model/model.safetensors"));
  expect_error("finetune --run stopped --learning-rate 1", "belongs to another configuration: learning-rate");
  expect_error("train --run stopped", "fine-tunes a model; plenum finetune --run stopped resumes it");
}

TEST_F(FineTuningProgram, OtherOptionsForSeedsThatAreThereAreRefusedAndNotKept) {
  const std::string arguments = finetune_arguments(classification(), "seeds") + " --seeds 2 --quiet";
  ASSERT_EQ(plenum(arguments + " --metric loss").exit_code, 0);
  expect_error("finetune --run seeds --learning-rate 1 --quiet",
               "seeds/seed-1 belongs to another configuration: learning-rate");
  ASSERT_EQ(plenum("finetune --run seeds --quiet --seeds 3").exit_code, 0);
  const nlohmann::json seeds = io::read_json_file(directory_ / "seeds/seeds.json");
  EXPECT_EQ(seeds["seeds"].size(), 3U);
  EXPECT_THAT(seeds["best"], testing::AnyOf("seeds/seed-1", "seeds/seed-2", "seeds/seed-3"));
}

TEST_F(FineTuningProgram, RunsSeveralSeedsAndShowsTheirMeanAndSpread) {
  const std::string arguments = finetune_arguments(classification(), "seeds");
  const test::ProgramResult result = plenum(arguments + " --seeds 3 --quiet");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("seed  dev accuracy"));
  const nlohmann::json seeds = io::read_json_file(directory_ / "seeds/seeds.json");
  ASSERT_EQ(seeds["seeds"].size(), 3U);
  double sum = 0;
  double best = 0;
  for (const nlohmann::json& seed : seeds["seeds"]) {
    const double accuracy = seed["dev"]["accuracy"];
    sum += accuracy;
    best = std::max(best, accuracy);
    EXPECT_TRUE(std::filesystem::exists(directory_ / (seed["run"].get<std::string>() + "/model")));
  }
  EXPECT_NEAR(seeds["dev"]["accuracy"]["mean"].get<double>(), sum / 3, 1e-12);
  double squares = 0;
  for (const nlohmann::json& seed : seeds["seeds"]) {
    const double off = seed["dev"]["accuracy"].get<double>() - sum / 3;
    squares += off * off;
    if (seed["run"] == seeds["best"]) {
      EXPECT_EQ(seed["dev"]["accuracy"], best);
    }
  }
  EXPECT_NEAR(seeds["dev"]["accuracy"]["standard_deviation"].get<double>(), std::sqrt(squares / 2), 1e-12);

  const std::string best_run = seeds["best"];
  EXPECT_THAT(result.output, HasSubstr(fmt::format("best: {} (dev accuracy {:.4f})\n", best_run, best)));
  EXPECT_THAT(result.output,
              HasSubstr(fmt::format("next: plenum predict --model {} --input FILE", best_run)));

  for (const char* command : {"predict seeds --input dev.tsv", "report seeds", "watch seeds"})
    expect_error(command, "seeds holds runs of several seeds; name one of them, such as seeds/seed-1");
  expect_error("finetune --run seeds --seed 7", "--seeds takes the seeds from 1 on; leave out --seed");

  // As if it had been stopped within the last.
  const std::string whole = io::read_file(directory_ / "seeds/seed-3/model/model.safetensors");
  std::filesystem::remove_all(directory_ / "seeds/seed-3");
  std::filesystem::remove(directory_ / "seeds/seeds.json");
  ASSERT_EQ(plenum("finetune --run seeds").exit_code, 0);
  EXPECT_TRUE(io::read_file(directory_ / "seeds/seed-3/model/model.safetensors") == whole);
  EXPECT_EQ(io::read_json_file(directory_ / "seeds/seeds.json"), seeds);
}

TEST_F(FineTuningProgram, ShowsNoTableOfSeedsThatNothingIsEvaluatedFor) {
  finetune_arguments(classification(), "seeds");
  const test::ProgramResult result = plenum(
      "finetune --model bert --task classification --train train.tsv --run seeds --seeds 2 --steps 1 "
      "--quiet");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output,
              testing::StartsWith("fine-tuned with 2 seeds; to compare them add --dev FILE\n"));
}

TEST_F(FineTuningProgram, SaysThatAllExamplesGetOneLabel) {
  const std::string arguments = finetune_arguments(classification(), "run");
  const test::ProgramResult learned = plenum(arguments + " --epochs 30");
  EXPECT_THAT(learned.errors, Not(HasSubstr("all 60 examples the label")));
  const test::ProgramResult constant = plenum(
      "finetune --model bert --task classification --train train.tsv --dev dev.tsv --run constant "
      "--learning-rate 1e-9 --steps 1");
  EXPECT_THAT(constant.errors, testing::ContainsRegex("dev.tsv: the model gives all 60 examples the label "
                                                      "'(blame|praise)'"));
}

TEST_F(FineTuningProgram, PredictsAsTheRunDidWithAndWithoutLabels) {
  ASSERT_EQ(plenum(finetune_arguments(classification(), "run")).exit_code, 0);
  const std::string dev = io::read_file(directory_ / "run/dev-predictions.jsonl");
  EXPECT_EQ(plenum("predict run --input dev.tsv").output, dev);
  const test::ProgramResult exported = plenum("predict run/model --input dev.tsv --output again.jsonl");
  EXPECT_THAT(exported.output, HasSubstr("accuracy "));
  EXPECT_EQ(io::read_file(directory_ / "again.jsonl"), dev);
  directory_.write("plain.tsv", test::without_labels(classification(), 2, 60));
  const test::ProgramResult plain = plenum("predict run --input plain.tsv --output plain.jsonl");
  EXPECT_EQ(io::read_file(directory_ / "plain.jsonl"), dev) << "labels are not read";
  EXPECT_THAT(plain.output, Not(HasSubstr("accuracy")));
}

TEST_F(FineTuningProgram, PredictsChoicesWithAModelThatDoesNotSayHowManyThereAre) {
  const test::MadeTask task = test::made_tasks().back();
  ASSERT_EQ(task.kind, describe::TaskKind::MultipleChoice);
  ASSERT_EQ(plenum(finetune_arguments(task, "run") + " --steps 2 --quiet").exit_code, 0);
  nlohmann::json config = io::read_json_file(directory_ / "run/model/config.json");
  ASSERT_EQ(config.erase("num_choices"), 1U);
  directory_.write("run/model/config.json", config.dump());
  const test::ProgramResult result =
      plenum("predict --model run/model --input " + dev_of(task) + " --output found.jsonl");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(io::read_file(directory_ / "found.jsonl"),
            io::read_file(directory_ / "run/dev-predictions.jsonl"));
}

TEST_F(FineTuningProgram, SaysInALineWhatIsMissing) {
  const std::string arguments = finetune_arguments(classification(), "run");
  expect_error("finetune --run run", "no task is given; add --task classification");
  expect_error("finetune --model bert --task classification --train train.tsv", "add --run DIR");
  expect_error("finetune --model bert --task classification --run run", "add --train FILE");
  expect_error("finetune --task classification --train train.tsv --run run", "give --model DIR");
  expect_error(arguments + " --metric f2", "--metric must be accuracy, f1, f1_macro, matthews or loss");
  expect_error("predict bert --input dev.tsv", "is not fine-tuned for a task");
  expect_error("predict bert", "add --input FILE");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
}

}  // namespace
}  // namespace plenum::cli
