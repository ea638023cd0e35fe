#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pty.h>

#include "plenum/cli/exit_codes.h"
#include "plenum/io/file.h"
#include "plenum/tensor/cuda_device.h"

#include "tests/cli/training_program.h"

namespace plenum::cli {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST_F(TrainingProgram, TrainsEvaluatesFillsAndExports) {
  const ProgramResult trained = plenum(train_arguments("run", 12, 2) + " --ranks 2");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("trained 12 of 12 steps"), HasSubstr("held-out MLM loss"),
                                    HasSubstr("outside the plan"), HasSubstr("next: plenum export run")));
  EXPECT_THAT(trained.output,
              AllOf(ContainsRegex("time: .*, [0-9,]+ tokens, [0-9,]+ tokens/s\n"),
                    HasSubstr("checkpoint: run/checkpoints/step-00000012\n"),
                    HasSubstr("metrics: run/metrics.jsonl, run/evaluations.jsonl; TensorBoard: "
                              "run/tensorboard\n")));
  EXPECT_THAT(trained.errors, AllOf(HasSubstr("model: bert-tiny, "), HasSubstr("device: 2 ranks of"),
                                    HasSubstr("learning rate: 0.001 after 1 step of warmup, then linear\n"),
                                    HasSubstr("checkpoints: run/checkpoints, every 10min and at the end\n"),
                                    HasSubstr("evaluations: every 6 steps and at the end\n")));
  EXPECT_THAT(trained.errors, ContainsRegex("\n[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}  wrote "
                                            "run/checkpoints/step-00000012\n"));

  const ProgramResult evaluated = plenum("eval run --json");  // on the run's own data
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const ProgramResult exported = plenum("export run --output hf");
  ASSERT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_THAT(exported.output, AllOf(HasSubstr("wrote hf"), HasSubstr("the same bit for bit")));
  const ProgramResult again = plenum("eval hf --data data --json");
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  const nlohmann::json before = nlohmann::json::parse(evaluated.output);
  const nlohmann::json after = nlohmann::json::parse(again.output);
  for (const char* key : {"mlm_loss", "mlm_accuracy", "pseudo_perplexity", "masked", "sequences"}) {
    EXPECT_EQ(before.at(key), after.at(key)) << key;
  }

  const std::string text = "\"the quick [MASK] jumps over the [MASK]\"";
  const ProgramResult filled = plenum("fill-mask --top 3 --json --model run " + text);
  ASSERT_EQ(filled.exit_code, 0) << filled.errors;
  const nlohmann::json guesses = nlohmann::json::parse(filled.output);
  ASSERT_EQ(guesses.at("masks").size(), 2U);
  EXPECT_EQ(guesses.at("masks")[0].size(), 3U);
  EXPECT_EQ(plenum("fill-mask --top 3 --json --model hf " + text).output, filled.output);
  EXPECT_EQ(plenum("fill-mask --top 3 --json --model run/checkpoints/step-00000012 " + text).output,
            filled.output);
  EXPECT_THAT(plenum("fill-mask --model hf", "the [MASK] fox\n").output,
              AllOf(HasSubstr("the [MASK] fox"), HasSubstr(" %  ")));

  EXPECT_THAT(plenum("fill-mask --model hf \"[MASK], the [MASK]\"").output, HasSubstr("[MASK], the [MASK]"));

  const ProgramResult no_text = plenum("fill-mask --json --model hf", "\xff [MASK]\n");
  EXPECT_EQ(no_text.exit_code, 2);
  EXPECT_THAT(no_text.errors, HasSubstr("a text is not UTF-8; convert it"));
  std::string many_words = "[MASK]";
  for (int i = 0; i < 5'000; ++i) many_words += " a";
  const ProgramResult too_long = plenum("fill-mask --model hf", many_words + "\n");
  EXPECT_EQ(too_long.exit_code, 2);
  EXPECT_LT(too_long.errors.size(), 200U);

  const ProgramResult continued =
      plenum("train --data data --run continued --init hf --steps 2 --global-batch 8 --quiet");
  EXPECT_EQ(continued.exit_code, 0) << continued.errors;
}

TEST_F(TrainingProgram, SaysWhyNoGpuIsUsedAndTouchesNothing) {
  const std::optional<std::string> obstacle = tensor::cuda_obstacle();
  if (!obstacle) GTEST_SKIP() << "there is a GPU";
  const ProgramResult refused = plenum(train_arguments("run", 4) + " --device cuda");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.errors,
            "plenum: error: no GPU can be used: " + *obstacle + "; --device cpu trains on the CPU\n");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
  EXPECT_THAT(plenum("doctor").output, HasSubstr(*obstacle));
}

TEST_F(TrainingProgram, RefusesADamagedCheckpointThatIsGivenByItsPath) {
  ASSERT_EQ(plenum(train_arguments("run", 4) + " --quiet").exit_code, 0);
  std::filesystem::copy(directory_ / "run/checkpoints/step-00000004", directory_ / "best");
  EXPECT_EQ(plenum("eval best/ --data data").exit_code, 0);
  std::string weights = io::read_file(directory_ / "best/model.safetensors");
  weights.back() = static_cast<char>(weights.back() ^ 1);
  io::write_file(directory_ / "best/model.safetensors", weights);
  const ProgramResult refused = plenum("eval best --data data");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("the checksum is wrong"));
}

TEST_F(TrainingProgram, TakesANumberOfStepsFromAFile) {
  directory_.write("steps.toml", "[run]\nsteps = 20_000\n[data]\nglobal-batch = 8\n");
  const ProgramResult printed = plenum("train --config steps.toml --print-config");
  EXPECT_EQ(printed.exit_code, 0) << printed.errors;
  EXPECT_THAT(printed.output, AllOf(HasSubstr("steps = \"20000st\""), HasSubstr("global-batch = \"8\"")));
}

TEST_F(TrainingProgram, ASignalEndsItWithACheckpointAndAWord) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const std::string run = "run" + std::to_string(signal);
    const pid_t child = start(train_arguments(run, 1'000'000));
    ASSERT_TRUE(wait_for(run + "/metrics.jsonl", child)) << read("err");
    ::kill(child, signal);
    EXPECT_EQ(exit_code_of(child), kStoppedCode);
    const std::string word = read("out");
    EXPECT_THAT(
        word, AllOf(HasSubstr("stopped after"), HasSubstr("next: plenum train --run " + run + " resumes\n")));
    EXPECT_THAT(read("err"), HasSubstr(signal == SIGINT   ? "plenum: Ctrl-C: stops when this step is done"
                                       : signal == SIGHUP ? "plenum: SIGHUP: stops when this step is done"
                                                          : "plenum: SIGTERM: stops when this step is done"));
    EXPECT_THAT(read("err"), HasSubstr(signal == SIGINT ? "Ctrl-C again, a second later, ends at once"
                                                        : "; Ctrl-C, a second later, ends at once"));
    std::smatch match;
    ASSERT_TRUE(std::regex_search(word, match, std::regex("checkpoint: (\\S+)"))) << word;
    EXPECT_TRUE(std::filesystem::exists(directory_ / match[1].str()));
  }
}

TEST_F(TrainingProgram, IsStoppedOnceHoweverManySignalsAskForIt) {
  const pid_t child = start(train_arguments("run", 1'000'000));
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child)) << read("err");
  for (const int signal : {SIGTERM, SIGHUP, SIGTERM, SIGHUP}) ::kill(child, signal);
  EXPECT_EQ(exit_code_of(child), kStoppedCode);
  EXPECT_THAT(read("out"), AllOf(HasSubstr("stopped after"), HasSubstr("checkpoint: run/checkpoints/step-")));
}

TEST_F(TrainingProgram, GoesOnThroughSignalsThatItWasStartedToIgnore) {
  const pid_t child = start(train_arguments("run", 1'000'000), std::nullopt, "trap '' HUP INT");
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child)) << read("err");
  ::kill(child, SIGHUP);
  ::kill(child, SIGINT);
  constexpr std::uintmax_t kManySteps = 10'000;  // in bytes of their metrics
  const std::uintmax_t before = std::filesystem::file_size(directory_ / "run/metrics.jsonl");
  EXPECT_TRUE(wait_for("run/metrics.jsonl", child, before + kManySteps)) << read("out");
  ::kill(child, SIGTERM);
  EXPECT_EQ(exit_code_of(child), kStoppedCode);
}

TEST_F(TrainingProgram, WritesACheckpointWhenItsTerminalGoesAway) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) exec(train_arguments("run", 1'000'000));
  ASSERT_TRUE(wait_for("run/metrics.jsonl", child));
  ::close(terminal);
  EXPECT_EQ(exit_code_of(child), kStoppedCode);
  const std::string metrics = read("run/metrics.jsonl");
  const auto step = static_cast<int>(std::count(metrics.begin(), metrics.end(), '\n'));
  EXPECT_TRUE(
      std::filesystem::exists(directory_ / fmt::format("run/checkpoints/step-{:08}/state.json", step)));
}

TEST_F(TrainingProgram, IsNotWaitedForWhenItHasEnded) {
  const pid_t child = start("--version");
  EXPECT_FALSE(wait_for("never", child));
  EXPECT_EQ(exit_code_of(child), 0);
}

TEST_F(TrainingProgram, GoesOnWhenNobodyReadsItsWordsAnyMore) {
  for (const char* quiet : {"", " --quiet"}) {
    const std::string run = std::string("run") + (*quiet == 0 ? "" : "-quiet");
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[0]);
    const pid_t child = start(train_arguments(run, 8) + quiet, ends[1]);
    ::close(ends[1]);
    EXPECT_EQ(exit_code_of(child), 0);
    EXPECT_TRUE(std::filesystem::exists(directory_ / (run + "/checkpoints/step-00000008/state.json")));
  }
}

TEST_F(TrainingProgram, ShowsABarAndColourOnATerminalOnly) {
  for (const std::string no_color : {"", "1"}) {
    const std::string run = "run" + no_color;
    int terminal = -1;
    winsize size{.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) exec(train_arguments(run, 300), "", "export TERM=xterm NO_COLOR=" + no_color);
    std::string shown;
    std::array<char, 4096> bytes{};
    for (ssize_t count = 0; (count = ::read(terminal, bytes.data(), bytes.size())) > 0;)
      shown.append(bytes.data(), static_cast<std::size_t>(count));
    EXPECT_EQ(exit_code_of(child), 0);
    ::close(terminal);
    EXPECT_THAT(shown, ContainsRegex("step [0-9]+/300  .*\\[=* *\\].* %  loss .* left")) << shown;
    EXPECT_EQ(shown.find("\x1b[32m") != std::string::npos, no_color.empty()) << shown;
  }
  const ProgramResult logged = plenum(train_arguments("logged", 4));
  EXPECT_EQ(logged.errors.find('\x1b'), std::string::npos) << logged.errors;
}

TEST_F(TrainingProgram, PrintsItsResultAsOneJsonObject) {
  const ProgramResult whole = plenum(train_arguments("run", 12) + " --json");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  const nlohmann::json result = nlohmann::json::parse(whole.output);
  EXPECT_EQ(result.at("end"), "finished");
  EXPECT_EQ(result.at("steps"), 12);
  EXPECT_EQ(result.at("num_steps"), 12);
  EXPECT_EQ(result.at("checkpoint"), "run/checkpoints/step-00000012");
  EXPECT_EQ(result.at("tensorboard"), "run/tensorboard");
  EXPECT_GT(result.at("tokens"), 0);
  EXPECT_GT(result.at("seconds"), 0);
  EXPECT_GT(result.at("tokens_per_second"), 0);
  EXPECT_GT(result.at("memory").at("planned_bytes"), 0);
  EXPECT_GT(result.at("memory").at("used_bytes"), 0);
  const std::string evaluations = read("run/evaluations.jsonl");
  const std::size_t last = evaluations.rfind('\n', evaluations.size() - 2) + 1;
  const nlohmann::json evaluation = nlohmann::json::parse(evaluations.substr(last));
  EXPECT_EQ(result.at("losses").at("held_out"), evaluation.at("loss"));
  EXPECT_EQ(result.at("losses").at("mlm_loss"), evaluation.at("mlm_loss"));
  EXPECT_TRUE(result.at("losses").at("train").is_number());
  EXPECT_LE(result.at("best").at("loss"), evaluation.at("loss"));

  const ProgramResult stopped = plenum(train_arguments("stopped", 1'000'000) + " --json --stop-after 0.1s");
  EXPECT_EQ(stopped.exit_code, kStoppedCode) << stopped.errors;
  EXPECT_EQ(nlohmann::json::parse(stopped.output).at("end"), "stopped");
  EXPECT_THAT(read("stopped/config.toml"), HasSubstr("json = false"));
}

TEST_F(TrainingProgram, IsFinishedWhenNoEvaluationFindsABetterModel) {
  const ProgramResult result = plenum(train_arguments("run", 1'000'000) +
                                      " --learning-rate 1e-30 --eval-every 1 --stop-when-worse 3 --json");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const nlohmann::json object = nlohmann::json::parse(result.output);
  EXPECT_EQ(object.at("end"), "no_better");
  EXPECT_EQ(object.at("steps"), 4);
}

TEST_F(TrainingProgram, SaysWhatARunLacksAndHowToMendIt) {
  ASSERT_EQ(plenum(train_arguments("run", 2) + " --quiet").exit_code, 0);
  const std::string config = read("run/config.toml");
  const std::string weights = read("run/checkpoints/step-00000002/model.safetensors");
  std::filesystem::remove_all(directory_ / "run/tokenizer");
  for (const char* command : {"eval run", "export run --output hf", "fill-mask --model run \"the [MASK]\""}) {
    expect_error(command, "run lacks its tokenizer");
    expect_error(command, "plenum train --run run puts it back");
  }
  const ProgramResult mended = plenum("train --run run --quiet");
  EXPECT_EQ(mended.exit_code, 0) << mended.errors;
  EXPECT_THAT(mended.errors, HasSubstr("run/tokenizer was gone and is written again"));
  EXPECT_EQ(plenum("export run --output hf").exit_code, 0);

  std::filesystem::remove(directory_ / "run/config.toml");
  for (const char* command : {"eval run", "export run --output hf", "fill-mask --model run \"the [MASK]\""})
    expect_error(command, "run has no config.toml");
  expect_error("train --run run", "run has checkpoints but no config.toml, which keeps the options");
  expect_error(train_arguments("run", 2) + " --quiet --width 24", "width in [model] is '16' there and '24'");
  const ProgramResult again = plenum(train_arguments("run", 2) + " --quiet");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.errors, HasSubstr("run/config.toml was gone and is written again"));
  EXPECT_EQ(read("run/config.toml"), config);
  EXPECT_TRUE(read("run/checkpoints/step-00000002/model.safetensors") == weights);
}

TEST_F(TrainingProgram, SaysHowAModelOfTheHubBecomesADirectory) {
  expect_error("train --data data --run x --init google-bert/bert-base-uncased",
               "there is no directory google-bert/bert-base-uncased; models are not downloaded");
  expect_error("train --data data --run x --init google-bert/bert-base-uncased",
               "hf download google-bert/bert-base-uncased --local-dir bert-base-uncased (pip install "
               "huggingface_hub), then --init bert-base-uncased");
  expect_error("fill-mask --model bert-base-uncased \"a [MASK]\"", "then --model bert-base-uncased");
  for (const char* command : {"prepare in --output other", "tokenize"}) {
    expect_error(command + std::string(" --tokenizer google-bert/bert-base-uncased"),
                 "--local-dir bert-base-uncased (pip install huggingface_hub), then --tokenizer "
                 "bert-base-uncased");
  }
  expect_error("prepare in --output other --vocab none.txt", "cannot open none.txt");
}

TEST_F(TrainingProgram, SaysThatAModelWithWeightsIsGivenByItsDirectory) {
  for (const std::string name : {"bert-base-uncased", "google-bert/bert-large"}) {
    expect_error("train --data data --run x --model " + name,
                 "'" + name + "'; to begin with trained weights, give their directory: --init DIR\n");
  }
}

TEST_F(TrainingProgram, SaysHowToChooseAGpu) {
  expect_error("train --data data --run x --model bert-tiny --device cuda:1",
               "CUDA_VISIBLE_DEVICES=1 with --device cuda chooses a GPU");
}

TEST_F(TrainingProgram, SaysThatNothingRemains) {
  ASSERT_EQ(plenum(train_arguments("run", 4) + " --quiet").exit_code, 0);
  for (const int steps : {4, 2}) {
    const ProgramResult again = plenum(train_arguments("run", steps) + " --quiet");
    EXPECT_EQ(again.exit_code, 0) << again.errors;
    EXPECT_THAT(again.output, HasSubstr("nothing remains to be done: 4 steps are trained, " +
                                        std::to_string(steps) + " are asked for"));
  }
}

TEST_F(TrainingProgram, EvaluatesWithTheMasksOfTheRunUnlessOthersAreGiven) {
  ASSERT_EQ(
      plenum(train_arguments("run", 2) + " --mask-rate 30% --mask-unit word --mask-split 100/0/0 --quiet")
          .exit_code,
      0);
  const auto evaluate = [&](const std::string& arguments) {
    const ProgramResult result = plenum("eval " + arguments + " --data data --json");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    nlohmann::json object = nlohmann::json::parse(result.output, nullptr, false);
    object.erase("model");
    object.erase("seconds");
    return object;
  };
  const nlohmann::json own = evaluate("run");
  EXPECT_EQ(own.at("mask_rate"), 0.3);
  EXPECT_EQ(own.at("mask_unit"), "word");
  EXPECT_EQ(own.at("mask_split"), "100/0/0");
  const nlohmann::json stored = nlohmann::json::parse(read("run/evaluations.jsonl"));
  EXPECT_EQ(own.at("mlm_loss"), stored.at("mlm_loss"));

  const nlohmann::json other = evaluate("run --mask-unit token --mask-rate 0.15");
  EXPECT_EQ(other.at("mask_unit"), "token");
  EXPECT_EQ(other.at("mask_split"), "100/0/0");
  ASSERT_EQ(plenum("export run --output hf").exit_code, 0);
  EXPECT_EQ(evaluate("hf --mask-split 100/0/0"), other);
  const std::string config = directory_.write(
      "eval.toml", plenum("eval run --mask-unit token --mask-rate 15% --print-config").output);
  EXPECT_EQ(evaluate("--config " + config), other);
}

TEST_F(TrainingProgram, ReportsWhatTheUserCanMendInOneLine) {
  ASSERT_EQ(plenum(train_arguments("run", 2) + " --quiet").exit_code, 0);
  expect_error("train --data data --model bert-tiny", "add --run DIR");
  expect_error("train --data data --run x", "give either --model NAME");
  expect_error("train --data data --run x --model bert-tniy", "did you mean 'bert-tiny'");
  expect_error("train --data data --run x --model bert-huge",
               "model must be one of bert-tiny, bert-mini, bert-small, bert-base, bert-large: 'bert-huge'\n");
  expect_error("train --data data --run x --device gpu", "--device must be one of auto, cpu, cuda: 'gpu'\n");
  expect_error("train --run x --model bert-tiny", "add --data DIR");
  expect_error("train --data none --run x --model bert-tiny", "none");
  expect_error("train --data data --run x --model bert-tiny --steps 3weeks", "steps");
  expect_error("train --data data --run x --model bert-tiny --stop-after 3", "stop-after");
  expect_error("train --data data --run x --model bert-tiny --max-positions 16", "--max-length 16");
  expect_error("train --data data --run x --model bert-tiny --ranks 3 --threads 2",
               "every rank needs a thread");
  expect_error("train --data data --run x --model bert-tiny --trace x.png", ".svg or .json");
  expect_error(train_arguments("run", 2) + " --mask-rate 0.2 --quiet", "mask-rate in [data]");
  expect_error("eval none --data data", "there is no directory none; models are not downloaded");
  expect_error("eval data --data data", "data holds no model");
  expect_error("eval run --data data --mask-rate 0", "mask-rate must be above 0");
  expect_error("eval run --data data --mask-unit letter", "mask-unit must be one of token, word");
  expect_error("fill-mask --model run \"no mask\"", "no [MASK] to fill");
  expect_error("export run", "add --output DIR");
  ASSERT_EQ(plenum("export run --output hf").exit_code, 0);
  expect_error("export run --output hf", "hf is there already; add --overwrite");
  EXPECT_EQ(plenum("export run --output hf --overwrite").exit_code, 0);
  directory_.write("afile", "x");
  expect_error(train_arguments("afile", 2), "afile is a file, not a directory");
  expect_error("export run --output afile", "afile is a file, not a directory");
}

TEST_F(TrainingProgram, RefusesAModelOfMoreLayersThanItsConfigurationNames) {
  ASSERT_EQ(plenum(train_arguments("run", 2) + " --quiet").exit_code, 0);
  ASSERT_EQ(plenum("export run --output hf").exit_code, 0);
  expect_error("eval hf", "hf is not of a run that knows one; add --data DIR");
  const std::string config =
      std::regex_replace(read("hf/config.json"), std::regex("(\"num_hidden_layers\": )2"), "$011");
  ASSERT_NE(config, read("hf/config.json"));
  directory_.write("hf/config.json", config);
  const std::string reason = "hf/model.safetensors: tensor bert.encoder.layer.1.";
  expect_error("eval hf --data data", reason);
  expect_error("fill-mask --model hf \"a [MASK]\"", reason);
  expect_error("export hf --output again", reason);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "again"));
}

TEST_F(TrainingProgram, TakesTheCheckpointThatIsAskedFor) {
  ASSERT_EQ(plenum(train_arguments("run", 12) + " --checkpoint-every 5 --keep 4 --quiet").exit_code, 0);
  EXPECT_THAT(plenum("export run --output last --checkpoint last").output, HasSubstr("(step 12"));
  EXPECT_THAT(plenum("export run --output five --checkpoint 5").output, HasSubstr("(step 5)"));
  EXPECT_THAT(plenum("export run --output best").output, HasSubstr("the best held-out loss"));
  EXPECT_THAT(plenum("eval run --checkpoint 5").output, HasSubstr("run/checkpoints/step-00000005 on"));
  EXPECT_EQ(plenum("fill-mask --model run --checkpoint 5 --json \"the [MASK] fox\"").output,
            plenum("fill-mask --model five --json \"the [MASK] fox\"").output);
  expect_error("export run --output none --checkpoint 7", "has no checkpoint of step 7; there are: 5, ");
  expect_error("eval run --checkpoint newest", "checkpoint must be best, last or the number of a step");
}

TEST_F(TrainingProgram, SaysThatTheLastEvaluationsWereNoBetter) {
  const std::string arguments =
      "train --data data --run run --model bert-tiny --layers 2 --width 16 --heads 2 --max-positions 32 "
      "--global-batch 16 --steps 60 --threads 1 --seed 5 --learning-rate 0.5 --warmup 30 --lr-schedule "
      "constant "
      "--eval-every 2 --stop-when-worse 2 --quiet";
  const ProgramResult stopped = plenum(arguments);
  EXPECT_THAT(stopped.output, HasSubstr("of 60 steps: the last evaluations found no better model"))
      << stopped.errors;
  EXPECT_THAT(stopped.output, HasSubstr("best held-out loss"));
  EXPECT_EQ(plenum(arguments).output.substr(0, 40), stopped.output.substr(0, 40));
}

TEST_F(TrainingProgram, SaysEvenQuietlyWhatIsHardlyMeant) {
  const std::string arguments =
      std::regex_replace(train_arguments("run", 2), std::regex("--global-batch 16"), "--global-batch 100000");
  const ProgramResult trained = plenum(arguments + " --quiet --mask-rate 1");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.errors, AllOf(HasSubstr("plenum: --global-batch 100000 is more than the dataset has"),
                                    HasSubstr("plenum: --mask-rate 1 masks")));
  EXPECT_THAT(plenum("eval run").errors, HasSubstr("--mask-rate 1 masks"));
}

TEST_F(TrainingProgram, EveryRecipeIsUnderstood) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(PLENUM_SOURCE_DIR) + "/recipes")) {
    if (entry.path().extension() != ".toml") continue;
    const ProgramResult printed = plenum("train --print-config --config " + entry.path().string());
    EXPECT_EQ(printed.exit_code, 0) << printed.errors;
    const std::string config = directory_.write("printed.toml", printed.output);
    EXPECT_EQ(plenum("train --print-config --config " + config).output, printed.output);
    ++recipes;
  }
  EXPECT_GE(recipes, 2);
}

}  // namespace
}  // namespace plenum::cli
