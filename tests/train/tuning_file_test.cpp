#include "plenum/train/tuning_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "plenum/io/file.h"
#include "plenum/io/json_file.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

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

}  // namespace
}  // namespace plenum::train
