#include "plenum/train/model_export.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "plenum/base/progress.h"
#include "plenum/io/file.h"

#include "tests/support/expect_user_error.h"
#include "tests/train/training_fixture.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;

class ModelExport : public TrainingTest {
 protected:
  ModelExport() {
    run(options("run", 1));
    base::SilentProgress silent;
    source_ = find_model(directory_ / "run", silent);
  }

  std::string error_of_export() {
    return test::user_error_of([&] { export_model(source_, directory_ / "export", io::Replace::No, 1); });
  }

  ModelSource source_;
};

TEST_F(ModelExport, HasATokenizerOfTheModelsSize) {
  EXPECT_EQ(error_of_export(), "no error");
  fs::remove_all(directory_ / "export");
  fs::remove(source_.tokenizer + "/tokenizer.json");
  EXPECT_EQ(error_of_export(), "no error");
  fs::remove_all(directory_ / "export");

  const std::string vocabulary = source_.tokenizer + "/vocab.txt";
  io::write_file(vocabulary, io::read_file(vocabulary) + "onemore\n");
  EXPECT_THAT(error_of_export(), testing::HasSubstr("they do not belong together"));
  fs::remove(vocabulary);
  EXPECT_THAT(error_of_export(), testing::HasSubstr("neither tokenizer.json nor vocab.txt"));
  EXPECT_FALSE(fs::exists(directory_ / "export"));
}

TEST_F(ModelExport, NamesACheckpointThatIsGone) {
  fs::remove_all(source_.directory);
  EXPECT_THAT(error_of_export(), testing::HasSubstr("step-00000001 is gone"));
}

}  // namespace
}  // namespace plenum::train
