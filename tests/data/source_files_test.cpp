#include "plenum/data/text/source_files.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/support/compress.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

namespace fs = std::filesystem;
using test::expect_user_error;
using test::TemporaryDirectory;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> paths_of(const SourceFiles& sources) {
  std::vector<std::string> paths;
  for (const SourceFile& file : sources.files) paths.push_back(file.path);
  return paths;
}

TEST(SourceFiles, ListsDirectoriesByPathAndSkipsWhatItDoesNotKnow) {
  const TemporaryDirectory directory;
  directory.write("in/b.txt", "b");
  directory.write("in/a/z.jsonl.zst", test::zstd("{}"));
  directory.write("in/a.csv", "text\n");
  directory.write("in/image.png", "x");
  const SourceFiles sources = list_source_files({directory / "in"});
  ASSERT_EQ(sources.files.size(), 3U);
  EXPECT_EQ(sources.files[0].path, directory / "in/a.csv");
  EXPECT_EQ(sources.files[1].path, directory / "in/a/z.jsonl.zst");
  EXPECT_EQ(sources.files[1].format, TextFormat::JsonLines);
  EXPECT_EQ(sources.files[2].path, directory / "in/b.txt");
  EXPECT_THAT(sources.unknown, ElementsAre(directory / "in/image.png"));
  EXPECT_THAT(sources.remarks(),
              ElementsAre("skipping 1 file of unknown format: " + (directory / "in/image.png")));
}

TEST(SourceFiles, RefusesWhatItCannotRead) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("in/a.txt", "b");
  const std::string image = directory.write("image.png", "x");
  std::filesystem::create_directories(directory / "empty");
  expect_user_error([&] { list_source_files({image}); }, "cannot tell the format of " + image);
  expect_user_error([&] { list_source_files({directory / "missing.txt"}); }, "no such file or directory");
  expect_user_error([&] { list_source_files({directory / "empty"}); }, "no text in");
  expect_user_error([&] { list_source_files({}); }, "no input is given");
  expect_user_error([&] { list_source_files({text, directory / "in"}); }, "is given twice");
}

TEST(SourceFiles, FollowsLinksToFoldersAndReadsEachFolderOnce) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in";
  directory.write("in/real/a.txt", "a");
  directory.write("elsewhere/b.txt", "b");
  directory.write("elsewhere/deep/c.txt", "c");
  fs::create_directory_symlink(directory / "elsewhere", in + "/link");
  fs::create_directory_symlink(in, directory / "elsewhere/deep/circle");
  fs::create_directory_symlink(in + "/real", in + "/again");
  const SourceFiles sources = list_source_files({in});
  EXPECT_THAT(paths_of(sources),
              ElementsAre(in + "/link/b.txt", in + "/link/deep/c.txt", in + "/real/a.txt"));
  EXPECT_THAT(sources.repeated, ElementsAre(in + "/again", in + "/link/deep/circle"));
}

TEST(SourceFiles, ReadsAFileWithSeveralNamesInADirectoryOnceAndSaysSo) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in";
  directory.write("in/b.txt", "b");
  fs::create_symlink("b.txt", in + "/a.txt");
  fs::create_hard_link(in + "/b.txt", in + "/c.txt");
  const SourceFiles sources = list_source_files({in});
  EXPECT_THAT(paths_of(sources), ElementsAre(in + "/a.txt"));
  EXPECT_THAT(
      sources.remarks(),
      ElementsAre("reading once, not twice, 2 files or folders with two names, such as " + in + "/b.txt"));
  directory.write("other/d.txt", "d");
  EXPECT_EQ(list_source_files({in, directory / "other", directory / "other"}).files.size(), 2U);
}

TEST(SourceFiles, NamesLinksThatLeadNowhereAndWhatIsNoFile) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in";
  directory.write("in/a.txt", "a");
  fs::create_symlink("gone.txt", in + "/lost.txt");
  fs::create_symlink("circle.txt", in + "/circle.txt");
  ASSERT_EQ(::mkfifo((in + "/pipe.txt").c_str(), 0600), 0);
  const SourceFiles sources = list_source_files({in});
  EXPECT_THAT(paths_of(sources), ElementsAre(in + "/a.txt"));
  EXPECT_THAT(sources.dangling, testing::UnorderedElementsAre(in + "/lost.txt", in + "/circle.txt"));
  EXPECT_THAT(sources.special, ElementsAre(in + "/pipe.txt"));
  EXPECT_EQ(sources.remarks().size(), 2U);
  EXPECT_EQ(sources.remarks().back(), "skipping 1 pipe, socket or device: " + in + "/pipe.txt");
}

TEST(SourceFiles, SkipsVocabulariesInDirectories) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in";
  directory.write("in/a.txt", "a");
  directory.write("in/words/vocab.txt", "a text of this name");
  directory.write("in/model/vocab.txt", "[PAD]");
  directory.write("in/model/tokenizer.json", "{}");
  const SourceFiles sources = list_source_files({in});
  EXPECT_THAT(paths_of(sources), ElementsAre(in + "/a.txt", in + "/words/vocab.txt"));
  EXPECT_EQ(sources.remarks().back(), "skipping 1 vocabulary of a tokenizer: " + in + "/model/vocab.txt");
  EXPECT_EQ(list_source_files({in + "/model/vocab.txt"}).files.size(), 1U) << "given itself";
}

TEST(SourceFiles, NoticesFilesThatChangeAfterTheyWereListed) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("a.txt", "one\n");
  const SourceFiles sources = list_source_files({path});
  require_unchanged(sources.files);
  std::ofstream(path, std::ios::app) << "two\n";
  expect_user_error([&] { require_unchanged(sources.files); },
                    path +
                        " changed while it was read; wait until it is complete and prepare again: 4 bytes "
                        "before, 8 now");
  fs::remove(path);
  expect_user_error([&] { require_unchanged(sources.files); }, "cannot read " + path);
}

}  // namespace
}  // namespace plenum::data
