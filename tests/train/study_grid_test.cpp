#include "plenum/train/study_grid.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/base/check.h"

#include "tests/support/temporary_directory.h"

namespace plenum::train {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text, std::string place = {}) {
  try {
    study_configuration(text, std::move(place));
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(StudyGrid, AConfigurationIsWhatTrainWouldRead) {
  const StudyConfiguration configuration =
      study_configuration("--model bert-mini --layout=packed  --ranks 4 --tp 2 --share-gpu --recompute mlp");
  EXPECT_EQ(configuration.options.model.preset, "bert-mini");
  EXPECT_EQ(configuration.options.data.layout, data::Layout::Packed);
  EXPECT_EQ(configuration.options.run.ranks, 4);
  EXPECT_EQ(configuration.options.run.tp, 2);
  EXPECT_TRUE(configuration.options.run.share_gpu);
  EXPECT_EQ(configuration.options.run.recompute, schedule::Recomputation::Mlp);
}

TEST(StudyGrid, OptionsThatTrainHasNotAreRefusedByPlace) {
  EXPECT_THAT(refusal("--modell bert-mini", "grid:7"),
              testing::AllOf(testing::StartsWith("grid:7: "), HasSubstr("--modell"), HasSubstr("'model'")));
  EXPECT_THAT(refusal("--ranks many"), HasSubstr("ranks"));
  EXPECT_THAT(refusal("--ranks 1 2"), HasSubstr("one value"));
  EXPECT_THAT(refusal("--ranks"), HasSubstr("one value"));
  EXPECT_THAT(refusal("bert-mini"), HasSubstr("begins with an option"));
}

TEST(StudyGrid, OptionsOfTheStudyAreNoPartOfTheName) {
  StudyConfiguration configuration =
      study_configuration("--model bert-tiny --layout padded --global-batch 512tok --ranks 2");
  const std::string name = configuration.name();
  add_option(configuration, "threads", "2");
  EXPECT_EQ(configuration.options.run.threads, 2);
  EXPECT_EQ(configuration.name(), name);
  EXPECT_THAT(name, testing::AllOf(HasSubstr("bert-tiny padded 512tok"), HasSubstr("dp 2")));
}

TEST(StudyGrid, LayoutsOverRanksAreOneWork) {
  const auto work = [](const std::string& more) {
    return study_configuration("--model bert-tiny --layout unpadded --global-batch 512tok " + more).work();
  };
  EXPECT_EQ(work("--ranks 2"), work("--ranks 4 --pp 2 --bucket-bytes 9 --shard optimizer --recompute full"));
  EXPECT_NE(work("--ranks 2"), work("--ranks 2 --optimizer lamb"));
  EXPECT_NE(work("--ranks 2"), work("--ranks 2 --emulate-link latency=1ms,bandwidth=1GB/s"));
}

TEST(StudyGrid, ReadyGridsHaveNoConfigurationTwice) {
  for (const std::string name : {"quick", "full", "links"}) {
    for (const std::int64_t most_ranks : {2, 16}) {
      const std::vector<StudyConfiguration> grid = study_grid({.name = name, .most_ranks = most_ranks});
      std::set<std::string> names;
      for (const StudyConfiguration& configuration : grid) {
        EXPECT_TRUE(names.insert(configuration.name()).second) << configuration.name();
        EXPECT_LE(configuration.options.run.ranks, most_ranks);
      }
      EXPECT_GE(grid.size(), name == "full" ? 40 : 10) << name;
    }
  }
}

TEST(StudyGrid, ReadyGridsKeepToModelsAndRanks) {
  for (const StudyConfiguration& configuration :
       study_grid({.name = "full", .models = {"bert-base"}, .ranks = {4}, .most_ranks = 16})) {
    EXPECT_EQ(configuration.options.model.preset, "bert-base");
    EXPECT_EQ(configuration.options.run.ranks, 4);
  }
  EXPECT_FALSE(study_grid({.name = "quick", .ranks = {1}}).empty());
}

TEST(StudyGrid, TheGridForOneGpuHasAllLayoutsOfThreeModels) {
  GridRequest request;
  request.name = PLENUM_SOURCE_DIR "/recipes/studies/one-gpu.txt";
  std::set<std::string> works;
  std::set<std::string> models;
  for (const StudyConfiguration& configuration : study_grid(request)) {
    EXPECT_EQ(configuration.options.run.device, tensor::Device::Cuda);
    works.insert(configuration.name());
    models.insert(configuration.options.model.preset);
  }
  EXPECT_EQ(models.size(), 3);
  EXPECT_EQ(works.size(), 3 * 3 * 4);
}

TEST(StudyGrid, AFileHasOneConfigurationInALine) {
  const test::TemporaryDirectory directory;
  const std::string path =
      directory.write("grid", "# two\n\n--model bert-tiny\n  --model bert-mini --ranks 2\n");
  const std::vector<StudyConfiguration> grid = study_grid({.name = path});
  ASSERT_EQ(grid.size(), 2);
  EXPECT_EQ(grid[1].options.run.ranks, 2);
  EXPECT_EQ(grid[1].place, path + ":4");
  EXPECT_THROW(study_grid({.name = directory.write("empty", "# nothing\n")}), base::UserError);
  EXPECT_THROW(study_grid({.name = "qick"}), base::UserError);
}

}  // namespace
}  // namespace plenum::train
