#include "plenum/train/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/io/checksum.h"
#include "plenum/io/file.h"
#include "plenum/io/json_file.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/named_tensors.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps the notes.
class Notes final : public base::Progress {
 public:
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {}
  void end() override {}
  void note(std::string_view line) override { lines.emplace_back(line); }
  void warn(std::string_view line) override { lines.emplace_back(line); }

  std::vector<std::string> lines;
};

/// A tiny model in training whose tensors tell which step they are of.
class Checkpoints : public testing::Test {
 protected:
  CheckpointTensors tensors() {
    return {table_, std::span(weights_), std::span(first_moments_), std::span(second_moments_)};
  }

  void fill(float value) {
    std::iota(weights_.begin(), weights_.end(), value);
    std::iota(first_moments_.begin(), first_moments_.end(), value + 0.25f);
    std::iota(second_moments_.begin(), second_moments_.end(), value + 0.5f);
  }

  TrainingState state(std::uint64_t step) const {
    return {.step = step,
            .num_updates = step - 1,
            .tokens = 1000 * step,
            .sequences = 10 * step,
            .skipped_steps = 1,
            .skipped_in_a_row = 0,
            .best_loss = 1.0 / 3,
            .best_step = 3,
            .seed = ~std::uint64_t{0},
            .fingerprint = "model \"a\"\n",
            .packing_plan = "xxh3:0123456789abcdef",
            .options = {{"width in [model]", "'16'"}}};
  }

  void save(std::uint64_t step) {
    fill(static_cast<float>(step));
    store_.save(state(step), config_, tensors());
  }

  std::optional<FoundCheckpoint> load() {
    fill(-1e6f);
    std::optional<FoundCheckpoint> found = store_.find_latest(notes_);
    if (found) train::load(*found, tensors());
    return found;
  }

  /// Loads and expects the tensors and state of `step`.
  FoundCheckpoint expect_loads(std::uint64_t step) {
    const std::optional<FoundCheckpoint> loaded = load();
    if (!loaded) {
      ADD_FAILURE() << "no checkpoint";
      return {};
    }
    EXPECT_EQ(loaded->state, state(step));
    EXPECT_EQ(loaded->model, config_);
    const std::vector<std::vector<float>> read = {weights_, first_moments_, second_moments_};
    fill(static_cast<float>(step));
    const std::vector<std::vector<float>> expected = {weights_, first_moments_, second_moments_};
    for (const describe::Parameter& parameter : table_.parameters()) {
      for (std::size_t buffer = 0; buffer < read.size(); ++buffer) {
        EXPECT_TRUE(std::equal(read[buffer].begin() + parameter.begin, read[buffer].begin() + parameter.end(),
                               expected[buffer].begin() + parameter.begin))
            << parameter.name;
      }
    }
    return *loaded;
  }

  std::string directory_of(std::uint64_t step) const {
    return directory_ / fmt::format("checkpoints/step-{:08}", step);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_ / "checkpoints"))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  test::TemporaryDirectory directory_;
  describe::ModelConfig config_ = test::tiny_model();
  describe::ParameterTable table_{describe::describe_bert(config_)};
  std::vector<float> weights_ = std::vector<float>(static_cast<std::size_t>(table_.num_elements()));
  std::vector<float> first_moments_ = weights_;
  std::vector<float> second_moments_ = weights_;
  CheckpointStore store_{directory_.path(), 2};
  Notes notes_;
};

TEST_F(Checkpoints, AreReadAsTheyWereWritten) {
  EXPECT_FALSE(load().has_value());
  EXPECT_THAT(store_.list(), IsEmpty());
  save(200);
  const FoundCheckpoint loaded = expect_loads(200);
  EXPECT_EQ(loaded.directory, directory_of(200));
  EXPECT_THAT(loaded.refused, IsEmpty());
  EXPECT_THAT(notes_.lines, IsEmpty());
}

TEST_F(Checkpoints, KeepAStateWithoutEvaluationPackingPlanAndOptions) {
  TrainingState state = this->state(5);
  state.best_loss.reset();
  state.packing_plan.clear();
  state.options.clear();
  store_.save(state, config_, tensors());
  EXPECT_EQ(load()->state, state);
}

TEST_F(Checkpoints, AreDirectoriesOfHuggingFaceWeights) {
  save(7);
  std::vector<float> weights_N(weights_.size());
  const model::ImportReport report = model::read_hugging_face_weights(directory_of(7), table_, weights_N);
  EXPECT_THAT(report.new_tensors, IsEmpty());
  EXPECT_THAT(report.unused_tensors, IsEmpty());
}

TEST_F(Checkpoints, GiveWeightsAloneToAReaderWithoutMoments) {
  save(7);
  std::vector<float> weights_N(weights_.size());
  train::load(*store_.find_latest(notes_), {table_, std::span(weights_N), {}, {}});
  const describe::Parameter& embedding = table_.at(table_.model().embedding.words.weight);
  EXPECT_TRUE(
      std::ranges::equal(model::elements_of(embedding, weights_N), model::elements_of(embedding, weights_)));
}

TEST_F(Checkpoints, OfWhichTheNewestAreKept) {
  for (const std::uint64_t step : {1u, 2u, 10u, 100'000'000u}) save(step);
  EXPECT_THAT(store_.list(), ElementsAre(directory_of(10), directory_of(100'000'000)));
  EXPECT_THAT(names(), ElementsAre("step-00000010", "step-100000000"));
  expect_loads(100'000'000);
}

TEST_F(Checkpoints, OfEarlierVersionsAreRead) {
  nlohmann::json object = to_json_object(state(7));
  object.erase("worse_in_a_row");
  object.erase("evaluated_step");
  const TrainingState read = parse_training_state(object, "state.json");
  EXPECT_EQ(read.worse_in_a_row, 0U);
  EXPECT_EQ(read.evaluated_step, 7U) << "what was due then is not owed now";
  object.erase("best_step");
  test::expect_user_error([&] { parse_training_state(object, "state.json"); }, "best_step");
}

TEST_F(Checkpoints, OfWhichTheBestIsKeptAndNamed) {
  for (const std::uint64_t step : {1u, 2u, 3u, 4u, 5u, 6u}) save(step);  // 3 is the best
  EXPECT_THAT(names(), ElementsAre("best", "step-00000003", "step-00000005", "step-00000006"));
  EXPECT_EQ(fs::read_symlink(directory_ / "checkpoints/best"), "step-00000003");
  const auto step_of = [&](const char* choice) {
    return store_.find(parse_checkpoint_choice(choice, "checkpoint"), notes_)->state.step;
  };
  EXPECT_EQ(step_of("best"), 3U);
  EXPECT_EQ(step_of("last"), 6U);
  EXPECT_EQ(step_of("5"), 5U);
  test::expect_user_error([&] { step_of("4"); }, "has no checkpoint of step 4; there are: 3, 5, 6");
  test::expect_user_error([&] { step_of("worst"); }, "checkpoint must be best, last or the number of a step");
  EXPECT_THAT(notes_.lines, testing::IsEmpty());
}

TEST_F(Checkpoints, LeaveNoHalfMadeNameOfTheBest) {
  save(3);
  fs::create_directory_symlink("step-00000002", directory_ / "checkpoints/best.partial");
  store_.remove_leftovers();
  EXPECT_THAT(names(), ElementsAre("best", "step-00000003"));
}

TEST_F(Checkpoints, StandInForABestThatIsDamaged) {
  for (const std::uint64_t step : {3u, 4u}) save(step);
  fs::remove(directory_of(3) + "/model.safetensors");
  EXPECT_EQ(store_.find({}, notes_)->state.step, 4U);
  EXPECT_THAT(notes_.lines, ElementsAre(HasSubstr("the best checkpoint, of step 3, cannot be used")));
}

TEST_F(Checkpoints, ReplaceThoseOfTheSameStep) {
  save(1);
  fill(50);
  store_.save(state(1), config_, tensors());
  ASSERT_TRUE(load().has_value());
  EXPECT_EQ(weights_[0], 50);
  EXPECT_THAT(names(), ElementsAre("step-00000001"));
}

/// Damages a file of the newest of two checkpoints and expects the one before.
class DamagedCheckpoints : public Checkpoints {
 protected:
  DamagedCheckpoints() {
    save(1);
    save(2);
  }

  void expect_earlier(const std::string& reason) {
    const FoundCheckpoint loaded = expect_loads(1);
    ASSERT_EQ(loaded.refused.size(), 1u);
    EXPECT_EQ(loaded.refused[0].directory, directory_of(2));
    EXPECT_THAT(loaded.refused[0].reason, HasSubstr(reason));
    EXPECT_THAT(loaded.refused[0].reason, HasSubstr("step-00000002"));
    EXPECT_THAT(notes_.lines, ElementsAre("checkpoint refused: " + loaded.refused[0].reason));
  }

  void flip_bit(const std::string& name, std::size_t position) const {
    const std::string path = directory_of(2) + "/" + name;
    std::string bytes = io::read_file(path);
    bytes[position] ^= 1;
    io::write_file(path, bytes);
  }
};

TEST_F(DamagedCheckpoints, WithoutAFileAreRefused) {
  fs::remove(directory_of(2) + "/optimizer.safetensors");
  expect_earlier("optimizer.safetensors: No such file");
}

TEST_F(DamagedCheckpoints, WithoutTheirStateAreRefused) {
  fs::remove(directory_of(2) + "/state.json");
  expect_earlier("state.json");
}

TEST_F(DamagedCheckpoints, WithACutFileAreRefused) {
  const std::string path = directory_of(2) + "/model.safetensors";
  fs::resize_file(path, fs::file_size(path) - 1);
  expect_earlier("model.safetensors: the size is wrong");
}

TEST_F(DamagedCheckpoints, WithAnAlteredTensorAreRefused) {
  flip_bit("model.safetensors", fs::file_size(directory_of(2) + "/model.safetensors") - 1);
  expect_earlier("model.safetensors: the checksum is wrong");
}

TEST_F(DamagedCheckpoints, OfTheFirstVersionAreReadAndVerified) {
  const std::string path = directory_of(2) + "/state.json";
  nlohmann::json root = nlohmann::json::parse(io::read_file(path));
  root["version"] = 1;
  root.erase("checksum");
  for (nlohmann::json& file : root["files"]) {
    file.erase("checksums");
    file["checksum"] = io::file_checksum(directory_of(2) + "/" + file["name"].get<std::string>());
  }
  io::add_checksum(root);
  io::write_file(path, root.dump());
  expect_loads(2);
  flip_bit("model.safetensors", fs::file_size(directory_of(2) + "/model.safetensors") - 1);
  expect_earlier("model.safetensors: the checksum is wrong");
}

TEST_F(DamagedCheckpoints, WithAnAlteredConfigurationAreRefused) {
  flip_bit("config.json", 30);
  expect_earlier("config.json: the checksum is wrong");
}

TEST_F(DamagedCheckpoints, WithAnAlteredStateAreRefused) {
  const std::string text = io::read_file(directory_of(2) + "/state.json");
  flip_bit("state.json", text.find("2000"));
  expect_earlier("state.json: the checksum is wrong");
}

TEST_F(DamagedCheckpoints, WithAStateThatIsNoJsonAreRefused) {
  fs::resize_file(directory_of(2) + "/state.json", 40);
  expect_earlier("this is not JSON");
}

TEST_F(DamagedCheckpoints, UnderAnotherNameAreRefused) {
  fs::remove_all(directory_of(2));
  fs::copy(directory_of(1), directory_of(2));
  expect_earlier("must be that of its step, 1");
}

TEST_F(DamagedCheckpoints, AreAllNamedWhenNoneIsLeft) {
  fs::remove(directory_of(1) + "/config.json");
  fs::remove(directory_of(2) + "/model.safetensors");
  const std::string message = test::user_error_of([&] { load(); });
  EXPECT_THAT(message, HasSubstr("no checkpoint can be used"));
  EXPECT_THAT(message, HasSubstr("step-00000001/config.json"));
  EXPECT_THAT(message, HasSubstr("step-00000002/model.safetensors"));
}

TEST_F(DamagedCheckpoints, DoNotPushOutGoodOnes) {
  CheckpointStore keeps_one(directory_.path(), 1);
  fs::rename(directory_of(2), directory_of(9));
  fill(5);
  keeps_one.save(state(5), config_, tensors());
  EXPECT_THAT(store_.list(), ElementsAre(directory_of(5), directory_of(9)));
  expect_loads(5);
}

TEST_F(DamagedCheckpoints, DoNotPushOutGoodOnesOfEarlierSteps) {
  fs::resize_file(directory_of(2) + "/model.safetensors", 10);
  expect_loads(1);
  save(3);
  EXPECT_THAT(store_.list(), ElementsAre(directory_of(1), directory_of(2), directory_of(3)));
  save(4);
  EXPECT_THAT(store_.list(), ElementsAre(directory_of(3), directory_of(4)));
}

TEST_F(DamagedCheckpoints, AreNotThoseOfANewerVersion) {
  const std::string path = directory_of(2) + "/state.json";
  std::string text = io::read_file(path);
  text.replace(text.find("\"version\": 2"), 12, "\"version\": 3");
  io::write_file(path, text);
  test::expect_user_error([&] { load(); }, "state.json: a newer Plenum wrote this, version 3");
}

TEST_F(DamagedCheckpoints, AreNotThoseThatCannotBeRead) {
  for (const char* name : {"state.json", "model.safetensors"}) {
    const std::string path = directory_of(2) + "/" + name;
    fs::rename(path, path + ".kept");
    fs::create_symlink(name, path);  // leads to itself
    test::expect_user_error([&] { load(); }, std::string(name) + ": Too many levels of symbolic links");
    fs::rename(path + ".kept", path);
  }
  expect_loads(2);
}

TEST_F(Checkpoints, AreNotAbsentWhereTheirDirectoryCannotBeRead) {
  directory_.write("checkpoints", "a file");
  test::expect_user_error([&] { load(); }, "checkpoints is a file, not a directory");
  fs::remove(directory_ / "checkpoints");
  fs::create_symlink("nowhere", directory_ / "checkpoints");
  test::expect_user_error([&] { load(); }, "checkpoints: No such file");
  test::expect_user_error([&] { store_.remove_leftovers(); }, "checkpoints: No such file");
}

TEST_F(Checkpoints, AreFoundWhileAnotherProcessTrains) {
  const CheckpointStore keeps_one(directory_.path(), 1);
  keeps_one.save(state(1), config_, tensors());
  std::atomic<bool> is_over = false;
  std::jthread trains([&] {
    for (std::uint64_t step = 2; step < 200; ++step) keeps_one.save(state(step), config_, tensors());
    is_over = true;
  });
  while (!is_over) {
    const std::optional<FoundCheckpoint> found = store_.find_latest(notes_);
    EXPECT_TRUE(found.has_value());
  }
  trains.join();
  EXPECT_THAT(notes_.lines, IsEmpty());
}

TEST_F(Checkpoints, OfAnotherModelAreAnErrorAndNotPassedOver) {
  save(1);
  describe::ModelConfig wider = config_;
  wider.mlp_width = 8;
  const describe::ParameterTable table(describe::describe_bert(wider));
  std::vector<float> values(static_cast<std::size_t>(table.num_elements()));
  const FoundCheckpoint found = *store_.find_latest(notes_);
  test::expect_user_error(
      [&] {
        train::load(found, {table, std::span(values), {}, {}});
      },
      "has shape [4, 6], the model needs [4, 8]");
}

TEST_F(Checkpoints, SurviveAFullDisk) {
  save(1);
  for (const rlim_t most_bytes : {100, 2000, 6000}) {
    const test::FileSizeLimit full_disk(most_bytes);
    test::expect_user_error([&] { save(2); }, "cannot write");
  }
  EXPECT_THAT(names(), ElementsAre("step-00000001"));
  expect_loads(1);
}

TEST_F(Checkpoints, AreFreedOfWhatAKilledRunLeft) {
  save(1);
  save(2);
  directory_.write("checkpoints/step-00000003.partial-abcdef/model.safetensors", "half");
  directory_.write("checkpoints/step-00000000.removed/state.json", "{}");
  directory_.write("checkpoints/notes.txt", "mine");
  fs::rename(directory_of(2), directory_of(2) + ".replaced");
  expect_loads(1);
  store_.remove_leftovers();
  EXPECT_THAT(names(), ElementsAre("notes.txt", "step-00000001", "step-00000002"));
  expect_loads(2);
  fs::copy(directory_of(1), directory_of(2) + ".replaced");
  store_.remove_leftovers();
  EXPECT_THAT(names(), ElementsAre("notes.txt", "step-00000001", "step-00000002"));
  expect_loads(2);
}

TEST(CheckpointStore, KeepsAtLeastOne) {
  test::expect_user_error([] { CheckpointStore("run", 0); }, "at least one checkpoint must be kept");
}

}  // namespace
}  // namespace plenum::train
