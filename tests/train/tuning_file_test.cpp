#include "plenum/train/tuning_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "plenum/io/file.h"
#include "plenum/io/json_file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/on_gpu.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

const Tuning kTuning = {
    {"training",
     {.measured_with = "cuBLASLt 130100 on NVIDIA H200",
      .algorithms = {{"32768x1024x4096 nt bf16 bias", "00ff"}, {"8x8x8 nn f32", "none"}}}},
    {"evaluation", {.measured_with = "cuBLASLt 130100 on NVIDIA H200", .algorithms = {}}}};

/// What is said of a file that holds `text`.
std::string error_of(const std::string& text) {
  return test::user_error_of([&] { parse_tuning(text, "run/tuning.json"); });
}

/// The text with one key altered, and its checksum right.
template <typename Alter>
std::string altered(Alter&& alter) {
  nlohmann::json root = nlohmann::json::parse(print_tuning(kTuning));
  alter(root);
  io::remove_checksum(root);
  io::add_checksum(root);
  return root.dump();
}

TEST(Tuning, ReadsWhatItWrote) {
  EXPECT_EQ(parse_tuning(print_tuning(kTuning), "tuning.json"), kTuning);
  EXPECT_EQ(parse_tuning(print_tuning({}), "tuning.json"), Tuning{});
}

TEST(Tuning, RefusesADamagedFileByName) {
  const std::string whole = print_tuning(kTuning);
  EXPECT_EQ(error_of(whole), "no error");
  std::string flipped = whole;
  flipped[flipped.find("00ff")] = '1';
  EXPECT_EQ(error_of(flipped), "run/tuning.json: the checksum is wrong; move the file away to measure anew");
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
                                  std::string(R"({"format": "plenum-checkpoint"})")}) {
    EXPECT_EQ(error_of(text),
              "run/tuning.json: this does not hold the tuning of a run; move it away to measure anew")
        << text;
  }
}

TEST(Tuning, RefusesWhatANewerVersionWrote) {
  EXPECT_THAT(error_of(altered([](nlohmann::json& root) { root["version"] = 2; })),
              testing::HasSubstr("run/tuning.json: a newer Plenum wrote this, version 2"));
}

TEST(Tuning, RefusesKeysThatAreMissingOrOfAnotherType) {
  EXPECT_THAT(error_of(altered([](nlohmann::json& root) { root.erase("streams"); })),
              testing::HasSubstr("run/tuning.json: the key \"streams\" is missing"));
  for (const nlohmann::json& wrong : {nlohmann::json(7), nlohmann::json::array({1}), nlohmann::json("x")}) {
    EXPECT_THAT(error_of(altered([&](nlohmann::json& root) { root["streams"]["training"] = wrong; })),
                testing::HasSubstr("run/tuning.json: the key \"measured_with\" is missing"))
        << wrong;
    const auto alter = [&](nlohmann::json& root) {
      root["streams"]["training"]["products"]["one"] = {wrong};
    };
    EXPECT_THAT(error_of(altered(alter)), testing::HasSubstr("run/tuning.json: one must be a text"));
  }
}

TEST(TuningFile, LeavesAFileAloneWhereOnlyTheCpuComputes) {
  const test::TemporaryDirectory directory;
  base::ThreadPool pool(1);
  const tensor::Stream stream(pool, {});
  const std::vector<TunedStream> streams = {{"training", stream}};
  const Note note = [](std::string_view line) { ADD_FAILURE() << line; };
  TuningFile none(directory / "none.json");
  none.restore(streams, note);
  none.save(streams);
  EXPECT_FALSE(std::filesystem::exists(directory / "none.json"));

  const std::string path = directory.write("tuning.json", print_tuning(kTuning));
  TuningFile file(path);
  file.restore(streams, note);
  file.save(streams);
  EXPECT_EQ(io::read_file(path), print_tuning(kTuning));
}

/// A run on the GPU.
class TuningOfARun : public test::OnGpu<TrainingTest> {
 protected:
  RunOptions on_gpu(std::string_view name, double steps) const {
    RunOptions given = options(name, steps);
    given.run.device = tensor::Device::Cuda;
    given.model.width = 128;
    given.model.mlp_width = 256;
    return given;
  }
  static std::string path_of(const RunOptions& given) { return RunPaths(given.run.directory).tuning; }
  static Tuning tuning_of(const RunOptions& given) {
    return parse_tuning(io::read_file(path_of(given)), path_of(given));
  }
  /// Products of other sizes may have come to it since.
  static void expect_to_hold(const Tuning& tuning, const Tuning& earlier) {
    for (const auto& [stream, choices] : earlier) {
      ASSERT_FALSE(choices.algorithms.empty()) << stream;
      EXPECT_THAT(tuning.at(stream).algorithms, testing::IsSupersetOf(choices.algorithms)) << stream;
    }
  }
};

TEST_F(TuningOfARun, IsKeptAndTakenUpAgain) {
  const RunOptions given = on_gpu("run", 4);
  run(given);
  Tuning tuning = tuning_of(given);
  ASSERT_FALSE(tuning.at("training").algorithms.empty());
  ASSERT_FALSE(tuning.at("evaluation").algorithms.empty());
  // What no measurement chooses, so that a run that measures anew does not come to it.
  for (auto& [stream, choices] : tuning) choices.algorithms.begin()->second = "none";
  io::write_file(path_of(given), print_tuning(tuning));
  run(on_gpu("run", 8));
  EXPECT_THAT(observer_.notes, testing::Each(testing::Not(testing::HasSubstr("chosen anew"))));
  expect_to_hold(tuning_of(given), tuning);
}

TEST_F(TuningOfARun, GivesAStoppedRunTheBytesOfOneThatWasNot) {
  // With so many rows in a micro-batch that products in bf16 have the 2^19 elements from which on algorithms
  // are compared (plenum/kernels/cuda/product/matmul_trial.cpp).
  const std::string dataset =
      prepare("long", data::Objective::MaskedLanguageModel, data::letter_vocabulary(), 1000);
  const auto options_of = [&](std::string_view name) {
    RunOptions given = on_gpu(name, 8);
    given.model.width = 256;
    given.model.heads = 4;
    given.model.mlp_width = 512;
    given.data.directory = dataset;
    given.data.global_batch = "300";
    given.data.micro_batch_tokens = 8192;
    given.evaluation.every = {4, optim::DurationUnit::Steps};
    return given;
  };
  const RunOptions whole = options_of("whole");
  run(whole);
  ASSERT_EQ(observer_.summary.micro_batches_per_rank, 1U);
  for (const StepReport& step : observer_.steps) {
    ASSERT_GE((step.work.tokens + step.padded_tokens) * 256, 1 << 19) << step.step;
  }

  const RunOptions parts = options_of("parts");
  EXPECT_EQ(run_and_stop(parts, 5).end, TrainingResult::End::Stopped);
  const Tuning tuning = tuning_of(parts);
  ASSERT_EQ(tuning.size(), 2U);
  EXPECT_EQ(run(parts).end, TrainingResult::End::Finished);
  expect_to_hold(tuning_of(parts), tuning);
  expect_same_checkpoint(parts, whole);
}

TEST_F(TuningOfARun, IsMadeAnewOnAnotherGpu) {
  const RunOptions given = on_gpu("run", 4);
  run(given);
  const Tuning measured = tuning_of(given);
  Tuning other = measured;
  for (auto& [name, choices] : other) choices.measured_with = "cuBLASLt 1 on another GPU";
  io::write_file(path_of(given), print_tuning(other));
  run(on_gpu("run", 8));
  EXPECT_THAT(observer_.notes, testing::Contains(testing::HasSubstr(
                                   "tuning.json: measured with cuBLASLt 1 on another GPU, which this is "
                                   "not; the algorithms of training are chosen anew")));
  EXPECT_EQ(tuning_of(given).at("training").measured_with, measured.at("training").measured_with);
}

TEST_F(TuningOfARun, IsRefusedWhereItIsDamaged) {
  run(on_gpu("run", 4));
  io::write_file(path_of(on_gpu("run", 4)), "{");
  test::expect_user_error([&] { run(on_gpu("run", 8)); }, "tuning.json: this does not hold the tuning");
}

}  // namespace
}  // namespace plenum::train
