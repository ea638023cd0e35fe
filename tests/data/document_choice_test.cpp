#include "plenum/data/text/document_choice.h"

#include <gtest/gtest.h>

#include "tests/support/compress.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// A paragraph of prose, wrapped, and the blank line behind it.
const std::string kParagraph =
    "The quick brown fox jumps over the lazy dog, and goes on doing so\n"
    "for as long as anybody cares to look at it.\n\n";
/// An article, a sentence a line, and the blank line behind it.
const std::string kArticle =
    repeated("The quick brown fox jumps over the lazy dog, which does not wake up.\n", 40) + "\n";

class DocumentChoice : public testing::Test {
 protected:
  DocumentRule choice() const {
    return choose_document_rule(sample_text(list_source_files({directory_ / "in"}).files));
  }
  test::TemporaryDirectory directory_;
};

TEST_F(DocumentChoice, IsTheFileForManyFilesOfParagraphs) {
  for (const char* name : {"in/a.txt", "in/b.txt", "in/c/d.txt"})
    directory_.write(name, repeated(kParagraph, 30));
  directory_.write("in/e.txt.gz", test::gzip(repeated(kParagraph, 30)));
  EXPECT_EQ(choice(), DocumentRule::File);
}

TEST_F(DocumentChoice, IsTheFileForFilesWithoutBlankLines) {
  for (const char* name : {"in/a.txt", "in/b.txt"}) directory_.write(name, kArticle);
  EXPECT_EQ(choice(), DocumentRule::File);
}

TEST_F(DocumentChoice, IsTheBlankLineForOneFileThatHasSome) {
  directory_.write("in/a.txt", repeated(kArticle, 30));
  EXPECT_EQ(choice(), DocumentRule::BlankLine);
  directory_.write("in/a.txt", repeated(kParagraph, 30));
  EXPECT_EQ(choice(), DocumentRule::BlankLine);
}

TEST_F(DocumentChoice, IsTheBlankLineForFilesOfWholeArticles) {
  for (const char* name : {"in/a.txt", "in/b.txt", "in/c.txt"})
    directory_.write(name, repeated(kArticle, 30));
  EXPECT_EQ(choice(), DocumentRule::BlankLine);
}

TEST_F(DocumentChoice, IsTheBlankLineForFilesTooLargeForOneDocument) {
  const std::string shard = repeated(kParagraph, 15'000);
  directory_.write("in/a.txt", shard);
  directory_.write("in/b.txt", shard);
  EXPECT_EQ(choice(), DocumentRule::BlankLine);
}

TEST_F(DocumentChoice, IsTheLineForOneFileOfLongLines) {
  directory_.write("in/a.txt", repeated(repeated("word ", 200) + "\n", 100));
  EXPECT_EQ(choice(), DocumentRule::Line);
}

TEST_F(DocumentChoice, IsTheFileForOneFileOfShortLinesOrALongOne) {
  directory_.write("in/a.txt", repeated("A sentence of the one story.\n", 5000));
  EXPECT_EQ(choice(), DocumentRule::File);
  directory_.write("in/a.txt", repeated("word ", 50'000));
  EXPECT_EQ(choice(), DocumentRule::File);
}

TEST_F(DocumentChoice, LooksAtTextFilesAlone) {
  directory_.write("in/a.jsonl", repeated("{\"text\": \"a\"}\n", 10));
  directory_.write("in/empty.txt", "");
  EXPECT_EQ(sample_text(list_source_files({directory_ / "in"}).files).num_files, 0U);
  EXPECT_EQ(choice(), DocumentRule::BlankLine);
}

}  // namespace
}  // namespace plenum::data
