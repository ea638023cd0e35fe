#include <filesystem>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "plenum/data/text/text_parser.h"
#include "plenum/data/text/text_reader.h"

#include "tests/support/compress.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

using test::expect_user_error;
using test::TemporaryDirectory;
using Documents = std::vector<std::vector<std::string>>;

/// Puts sentences that come in parts together again.
class Collector final : public TextSink {
 public:
  void sentence(std::string_view text, SentencePart part) override {
    const bool continues = part == SentencePart::Middle || part == SentencePart::Last;
    EXPECT_EQ(continues, open_) << text;
    if (!continues) document_.emplace_back();
    document_.back() += text;
    open_ = part == SentencePart::First || part == SentencePart::Middle;
  }
  void end_document() override {
    open_ = false;
    documents_.push_back(std::exchange(document_, {}));
  }
  Documents take() {
    EXPECT_TRUE(document_.empty()) << "a document is left open";
    return std::exchange(documents_, {});
  }

 private:
  std::vector<std::string> document_;
  Documents documents_;
  bool open_ = false;
};

Documents read(const std::vector<std::string>& inputs, const TextOptions& options) {
  const SourceFiles sources = list_source_files(inputs);
  TextReader reader(sources.files, options);
  TextParser parser(sources.files, options);
  Collector collector;
  TextBlock block;
  SourcePosition expected_begin;
  while (reader.next(block)) {
    EXPECT_EQ(block.begin.inside_document, expected_begin.inside_document);
    parser.parse(block, collector);
    expected_begin = block.end;
  }
  return collector.take();
}

/// Reads with every block size from 1 to the size of the text, and expects the same each time.
void expect_documents(const std::string& path, TextOptions options, const Documents& expected) {
  for (std::size_t block_bytes = 1; block_bytes <= 70; ++block_bytes) {
    options.block_bytes = block_bytes;
    ASSERT_EQ(read({path}, options), expected) << path << " in blocks of " << block_bytes;
  }
  options.block_bytes = 1 << 20;
  ASSERT_EQ(read({path}, options), expected) << path << " in one block";
}

struct FormatCase {
  std::string name;
  std::string text;
};

const Documents kDocuments = {
    {"First sentence.", "Second, with a comma."}, {"Alone \"quoted\""}, {"x", "y", "z"}};

const std::vector<FormatCase>& format_cases() {
  static const std::vector<FormatCase> cases = {
      {"a.txt", "First sentence.\nSecond, with a comma.\n\n\nAlone \"quoted\"\n  \nx\ny\nz\n"},
      {"b.txt",
       "\xEF\xBB\xBF\r\nFirst sentence.\r\nSecond, with a comma.\r\n\r\nAlone \"quoted\"\r\n\r\nx\r\ny\r\nz"},
      {"c.jsonl",
       "{\"text\": \"First sentence.\\nSecond, with a comma.\"}\n\n"
       "{\"id\": 7, \"text\": \"Alone \\\"quoted\\\"\"}\r\n{\"text\": \"x\\r\\n\\r\\ny\\nz\\n\"}"},
      {"d.csv",
       "id,text\n1,\"First sentence.\nSecond, with a comma.\"\r\n2,\"Alone "
       "\"\"quoted\"\"\"\n3,\"x\n\ny\nz\"\n"},
      {"e.tsv",
       "\xEF\xBB\xBFtext\tid\n\"First sentence.\nSecond, with a comma.\"\t1\nAlone "
       "\"quoted\"\t2\n\"x\ny\nz\"\t3"},
  };
  return cases;
}

TEST(TextSource, ReadsEveryFormatAndCompressionInBlocksOfAnySize) {
  const TemporaryDirectory directory;
  for (const FormatCase& format : format_cases()) {
    expect_documents(directory.write(format.name, format.text), {}, kDocuments);
    expect_documents(directory.write(format.name + ".gz", test::gzip(format.text)), {}, kDocuments);
    expect_documents(directory.write(format.name + ".zst", test::zstd(format.text)), {}, kDocuments);
  }
}

TEST(TextSource, TakesEachLineAsADocumentWhenAsked) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("a.txt", "one document here\n\nanother one\r\n \nlast");
  expect_documents(path, {.documents = DocumentRule::Line},
                   {{"one document here"}, {}, {"another one"}, {}, {"last"}});
}

TEST(TextSource, TakesEachFileAsADocumentWhenAsked) {
  const TemporaryDirectory directory;
  const TextOptions by_file{.documents = DocumentRule::File};
  expect_documents(directory.write("a.txt", "\n \none\n\n\ntwo parts\r\n\nthree"), by_file,
                   {{"one", "two parts", "three"}});
  expect_documents(directory.write("b.txt", "\n\n \n\n"), by_file, {});
  expect_documents(directory.write("c.txt", "one\n\n\n\n\n"), by_file, {{"one"}});
  const std::vector<std::string> both = {directory / "a.txt", directory / "b.txt", directory / "c.txt"};
  EXPECT_EQ(read(both, by_file), (Documents{{"one", "two parts", "three"}, {"one"}}));
}

TEST(TextSource, TakesAnotherTextField) {
  const TemporaryDirectory directory;
  const std::string json = directory.write("a.jsonl", "{\"text\": 1, \"body\": \"b\"}\n");
  const std::string csv = directory.write("a.csv", "text,\"the body\"\nt,b\n");
  expect_documents(json, {.text_field = "body"}, {{"b"}});
  expect_documents(csv, {.text_field = "the body"}, {{"b"}});
}

TEST(TextSource, GivesEmptyRecordsAsEmptyDocuments) {
  const TemporaryDirectory directory;
  expect_documents(
      directory.write("a.jsonl",
                      "{\"text\": \"\"}\n{\"text\": null}\n{\"text\": \" \\n\"}\n{\"text\": \"x\"}"),
      {}, {{}, {}, {}, {"x"}});
  expect_documents(directory.write("a.csv", "text,n\n,1\nx,2\n"), {}, {{}, {"x"}});
}

TEST(TextSource, ReadsFilesThatAreEmptyOrBlank) {
  const TemporaryDirectory directory;
  for (const char* text : {"", "\n", "\n\n \n", "\xEF\xBB\xBF", " "}) {
    expect_documents(directory.write("a.txt", text), {}, {});
  }
  expect_documents(directory.write("a.csv", "text\n"), {}, {});
  expect_documents(directory.write("b.csv", "text"), {}, {});
  expect_documents(directory.write("a.jsonl", "\n"), {}, {});
}

TEST(TextSource, KeepsNulBytesAndReplacesBytesThatAreNotUtf8WhenAsked) {
  const TemporaryDirectory directory;
  const std::string text("a\0b\n\xFF\xFE\n\nc\n", 10);
  expect_documents(directory.write("a.txt", text), {.invalid = InvalidTextRule::Replace},
                   {{std::string("a\0b", 3), "\uFFFD\uFFFD"}, {"c"}});
}

TEST(TextSource, CountsWhatIsNotUtf8InAHeaderOnceWhereverItIsTakenUp) {
  const TemporaryDirectory directory;
  const std::vector<std::string> paths = {directory.write("a.csv", "n\xE9,text\n1,a\n2,b\n3,c\n"),
                                          directory.write("b.tsv", "text\t\xE9\xE9\n"),
                                          directory.write("c.csv", "text\nd\n")};
  TextOptions options{.invalid = InvalidTextRule::Replace};
  options.block_bytes = 4;
  const SourceFiles sources = list_source_files(paths);
  TextParser parser(sources.files, options);
  Collector collector;
  const auto read_from = [&](const SourcePosition& start, InvalidText counted) {
    TextReader reader(sources.files, options, start);
    for (TextBlock block; reader.next(block);) counted.append(parser.parse(block, collector));
    return counted;
  };
  InvalidText before;
  TextReader reader(sources.files, options);
  for (TextBlock block; reader.next(block);) {
    before.append(parser.parse(block, collector));
    const InvalidText counted = read_from(block.end, before);
    EXPECT_EQ(counted.places, 3U);
    EXPECT_EQ(counted.bytes, 3U);
    EXPECT_EQ(counted.first_file, 0U);
    EXPECT_EQ(counted.first_line, 1U);
  }
  EXPECT_EQ(before.places, 3U);
  expect_documents(paths[0], {.invalid = InvalidTextRule::Replace}, {{"a"}, {"b"}, {"c"}});
  expect_documents(paths[0], {.invalid = InvalidTextRule::Replace, .text_field = "n\uFFFD"},
                   {{"1"}, {"2"}, {"3"}});
}

TEST(TextSource, CutsAWordWithoutEndBetweenCharacters) {
  const TemporaryDirectory directory;
  std::string line;
  for (int i = 0; i < 400; ++i) line += "\xE4\xB8\xAD\xC3\xA4z";
  const std::string path = directory.write("a.txt", line + "\n");
  TextOptions options;
  options.block_bytes = 7;
  options.longest_word_bytes = 50;
  const SourceFiles sources = list_source_files({path});
  TextReader reader(sources.files, options);
  TextBlock block;
  std::string all;
  while (reader.next(block)) {
    EXPECT_LE(block.bytes.size(), 100U);
    EXPECT_TRUE(block.bytes.empty() || (block.bytes[0] & 0xC0) != 0x80) << "a character is torn";
    all += block.bytes;
  }
  EXPECT_EQ(all, line + "\n");
  EXPECT_EQ(read({path}, options), (Documents{{line}}));
}

TEST(TextSource, StaysWithinItsBlocksOnAHugeLine) {
  const TemporaryDirectory directory;
  std::string line;
  while (line.size() < 300'000) line += "word ";
  const std::string path = directory.write("a.txt", line + "end\nnext");
  TextOptions options;
  options.block_bytes = 1000;
  const SourceFiles sources = list_source_files({path});
  TextReader reader(sources.files, options);
  TextBlock block;
  while (reader.next(block)) EXPECT_LE(block.bytes.size(), 1000U);
  EXPECT_EQ(read({path}, options), (Documents{{line + "end", "next"}}));
}

TEST(TextSource, CanBeTakenUpBehindAnyBlock) {
  const TemporaryDirectory directory;
  std::vector<std::string> paths;
  for (const FormatCase& format : format_cases()) {
    paths.push_back(directory.write(format.name + ".gz", test::gzip(format.text)));
    paths.push_back(directory.write(format.name, format.text));
  }
  TextOptions options;
  options.block_bytes = 9;
  const SourceFiles sources = list_source_files(paths);
  std::vector<TextBlock> blocks;
  TextReader reader(sources.files, options);
  for (TextBlock block; reader.next(block);) blocks.push_back(block);
  ASSERT_GT(blocks.size(), 50U);
  for (std::size_t start = 0; start < blocks.size(); ++start) {
    TextReader resumed(sources.files, options, blocks[start].end);
    TextBlock block;
    for (std::size_t i = start + 1; i < blocks.size(); ++i) {
      ASSERT_TRUE(resumed.next(block));
      ASSERT_EQ(block.bytes, blocks[i].bytes);
      ASSERT_EQ(block.end.offset, blocks[i].end.offset);
      ASSERT_EQ(block.end.line, blocks[i].end.line);
    }
    ASSERT_FALSE(resumed.next(block));
  }
  EXPECT_EQ(blocks.back().file_bytes_done, sources.total_bytes());
}

TEST(TextSource, NamesFileAndLineOfABadRecord) {
  const TemporaryDirectory directory;
  for (const std::size_t block_bytes : {std::size_t{5}, std::size_t{30}, std::size_t{1} << 20}) {
    TextOptions options;
    options.block_bytes = block_bytes;
    const auto expect_error = [&](std::string_view name, std::string_view text, std::string_view part) {
      const std::string path = directory.write(name, text);
      expect_user_error([&] { read({path}, options); }, path + std::string(part));
    };
    expect_error("a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": \n", ":3: the line is not valid JSON");
    expect_error("b.jsonl", "{\"text\": \"a\"}\n{\"t\": 1}\n", ":2: the object has no field 'text'");
    expect_error("a.csv", "text,n\n\"a\nb\",1\nx\n", ":4: the record has 1 fields, but the header has 2");
    expect_error("b.csv", "text,n\na,1\n\"open,2\n", ":3: a quoted field is not closed");
    expect_error("c.csv", "body,n\na,1\n",
                 ": no column is named 'text'; choose one of body, n by --text-field");
    expect_error("d.csv", "", ": no column is named 'text'");
    expect_error("e.csv", "text,n,text\na,1,b\n", ": two columns are named 'text'; rename the one");
    expect_error("c.jsonl", "{\"text\": \"a\", \"text\": \"b\"}\n",
                 ":1: the object has the field 'text' twice");
  }
}

TEST(TextSource, RefusesARecordOverTheLimit) {
  const TemporaryDirectory directory;
  TextOptions options;
  options.block_bytes = 10;
  options.longest_record_bytes = 100;
  const std::string json =
      directory.write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"" + std::string(500, 'x') + "\"}\n");
  expect_user_error([&] { read({json}, options); }, json + ":2: the record is longer than");
  const std::string csv = directory.write("a.csv", "text\na\n\"" + std::string(500, '\n'));
  expect_user_error([&] { read({csv}, options); }, "is a quote not closed?");
}

TEST(TextSource, FindsTheSameDocumentsInRandomTextWhateverTheBlocks) {
  const TemporaryDirectory directory;
  std::mt19937 random(5);
  constexpr std::string_view kLetters = "ab  \n\n\n\r\t\"";
  for (int round = 0; round < 60; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += kLetters[random() % kLetters.size()];
    const std::string path = directory.write("a.txt", text);
    for (const DocumentRule rule : {DocumentRule::BlankLine, DocumentRule::Line, DocumentRule::File}) {
      const Documents whole = read({path}, {.documents = rule});
      for (std::size_t block_bytes = 1; block_bytes < 62; block_bytes += 3) {
        ASSERT_EQ(read({path}, {.documents = rule, .block_bytes = block_bytes}), whole) << text;
      }
    }
  }
}

}  // namespace
}  // namespace plenum::data
