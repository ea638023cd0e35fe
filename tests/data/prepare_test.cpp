#include "plenum/data/corpus/prepare.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "plenum/data/corpus/dataset.h"
#include "plenum/data/corpus/partial_directory.h"

#include "tests/data/prepare_fixture.h"
#include "tests/support/compress.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using test::expect_user_error;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// All tokens of a split in order of the text, from the sequences alone.
std::vector<TokenId> tokens_of_sequences(const Dataset& dataset, Split split) {
  std::map<std::uint64_t, std::vector<TokenId>> by_place;
  for (std::uint64_t id = 0; id < dataset.num_sequences(split); ++id) {
    std::vector<TokenId> tokens;
    std::vector<std::uint8_t> segments;
    dataset.append_sequence(split, id, tokens, segments);
    EXPECT_EQ(tokens.size(), segments.size());
    EXPECT_EQ(static_cast<std::int64_t>(tokens.size()), dataset.length(split, id));
    by_place[dataset.record(split, id).first_a] = std::vector(tokens.begin() + 1, tokens.end() - 1);
  }
  std::vector<TokenId> all;
  for (const auto& [first, tokens] : by_place) {
    EXPECT_EQ(first, all.size()) << "a token is missing or in two sequences";
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return all;
}

class Prepare : public PrepareTest {};

/// Does something when a phase first advances.
class ActingProgress final : public base::Progress {
 public:
  explicit ActingProgress(std::function<void()> act) : act_(std::move(act)) {}
  void begin(std::string_view, std::string_view, std::uint64_t) override {}
  void advance_to(std::uint64_t) override {
    if (act_) std::exchange(act_, nullptr)();
  }
  void end() override {}
  void note(std::string_view) override {}
  void warn(std::string_view) override {}

 private:
  std::function<void()> act_;
};

TEST_F(Prepare, MakesTheSameBytesForAnyNumberOfThreads) {
  const std::string input = directory_.write("in.txt", random_text(1, 200));
  for (const Objective objective : {Objective::MaskedLanguageModel, Objective::WithNextSentence}) {
    PrepareOptions one = options(input, "one");
    one.sequences.objective = objective;
    one.holdout = 0.2;
    one.overwrite = true;
    PrepareOptions four = one;
    four.output = directory_ / "four";
    one.threads = 1;
    four.threads = 4;
    prepare_quietly(one);
    prepare_quietly(four);
    EXPECT_EQ(contents_of(one.output), contents_of(four.output));
  }
}

TEST_F(Prepare, GivesTheSameTokensWhateverFormatAndBlocks) {
  const std::string text = random_text(2, 40);
  const std::string plain = directory_.write("in.txt", text);
  const std::string packed = directory_.write("in.txt.gz", test::gzip(text));
  std::map<std::string, std::string> expected;
  int number = 0;
  for (const std::string& input : {plain, packed}) {
    for (const std::size_t block_bytes : {11, 64, 1000, 1 << 20}) {
      PrepareOptions given = options(input, "out" + std::to_string(number++));
      given.text.block_bytes = block_bytes;
      given.holdout = 0.3;
      prepare_quietly(given);
      std::map<std::string, std::string> made = contents_of(given.output);
      made.erase("dataset.json");  // names the input
      if (expected.empty()) expected = made;
      ASSERT_EQ(made, expected) << input << " in blocks of " << block_bytes;
    }
  }
}

TEST_F(Prepare, LosesNoTokenAndCountsEverything) {
  const std::string input =
      directory_.write("in.txt", "ab cd.\nefg\n\n\x01\x02\n\nab cd.\nefg\n\nxyz \xE2\x82\xAC\n");
  const PrepareResult result = prepare_quietly(options(input));
  const DatasetDescription& description = result.description;
  EXPECT_FALSE(result.was_there);
  EXPECT_EQ(description.counts.documents(), 3U);
  EXPECT_EQ(description.counts.empty_documents, 1U);
  EXPECT_EQ(description.counts[Split::Train].sentences, 5U);
  EXPECT_EQ(description.counts.tokens(), 20U);
  EXPECT_EQ(description.counts.unknown_tokens, 1U);
  EXPECT_EQ(description.duplicate_documents, 1U);
  EXPECT_DOUBLE_EQ(description.duplicate_share(), 1.0 / 3);
  const Dataset dataset(directory_ / "out");
  EXPECT_EQ(dataset.num_sequences(Split::Train), 3U);
  EXPECT_EQ(tokens_of_sequences(dataset, Split::Train).size(), 20U);
  base::SilentProgress silent;
  dataset.verify(silent);
}

TEST_F(Prepare, PutsEveryTokenIntoExactlyOneSequence) {
  const std::string input = directory_.write("in.txt", random_text(3, 120));
  for (const CutRule cut : {CutRule::Sentence, CutRule::Token}) {
    PrepareOptions given = options(input);
    given.sequences.cut = cut;
    given.holdout = 0.25;
    given.overwrite = true;
    prepare_quietly(given);
    const Dataset dataset(given.output);
    for (const Split split : kSplits) {
      EXPECT_EQ(tokens_of_sequences(dataset, split).size(), dataset.description().counts[split].tokens);
      EXPECT_GT(dataset.num_sequences(split), 10U);
    }
  }
}

TEST_F(Prepare, NumbersSequencesInOrderOfLengthAsTheHistogramSays) {
  const std::string input = directory_.write("in.txt", random_text(4, 100));
  prepare_quietly(options(input));
  const Dataset dataset(directory_ / "out");
  std::uint64_t id = 0;
  const std::vector<std::uint64_t>& counts = dataset.histogram(Split::Train).counts;
  ASSERT_EQ(counts.size(), 41U);
  for (std::size_t length = 0; length < counts.size(); ++length) {
    std::uint64_t previous = 0;
    for (std::uint64_t i = 0; i < counts[length]; ++i, ++id) {
      ASSERT_EQ(dataset.length(Split::Train, id), static_cast<std::int64_t>(length));
      const std::uint64_t place = dataset.record(Split::Train, id).first_a;
      ASSERT_TRUE(i == 0 || place > previous) << "equal lengths are not in order of the text";
      previous = place;
    }
  }
  EXPECT_EQ(id, dataset.num_sequences(Split::Train));
}

TEST_F(Prepare, SetsDocumentsAsideByWhatTheySayAlone) {
  const auto held_out = [&](const std::string& input, std::string_view output) {
    PrepareOptions given = options(input, output);
    given.holdout = 0.3;
    prepare_quietly(given);
    return io::read_file(given.output + "/holdout.bin");
  };
  const std::string text = random_text(5, 60);
  const std::string more = random_text(6, 60);
  const std::string alone = held_out(directory_.write("a.txt", text), "a");
  const std::string with_more = held_out(directory_.write("b.txt", text + "\n" + more), "b");
  const std::string only_more = held_out(directory_.write("c.txt", more), "c");
  EXPECT_GT(alone.size(), 0U);
  EXPECT_EQ(with_more, alone + only_more);
}

TEST_F(Prepare, TrainsAVocabularyTheSameForAnyNumberOfThreads) {
  const std::string input = directory_.write("in.txt", random_text(7, 50));
  std::vector<std::map<std::string, std::string>> made;
  for (const int threads : {1, 3}) {
    PrepareOptions given = options(input, "out" + std::to_string(threads));
    given.vocab_path.clear();
    given.train_vocab_size = 120;
    given.threads = threads;
    EXPECT_EQ(prepare_quietly(given).description.vocabulary_size, 120U);
    made.push_back(contents_of(given.output));
  }
  EXPECT_EQ(made[0], made[1]);
}

TEST_F(Prepare, CutsDocumentsOffOnlyWhenAskedAndCountsIt) {
  const std::string input = directory_.write("in.txt", std::string(100, 'a') + "\n\n" + "bb\n");
  PrepareOptions given = options(input);
  given.sequences.only_first = true;
  const DatasetDescription description = prepare_quietly(given).description;
  // A word of more than 100 letters would be unknown; this one is 100 tokens, of which 38 fit.
  EXPECT_EQ(description[Split::Train].histogram.num_sequences(), 2U);
  EXPECT_EQ(description[Split::Train].lost.behind_first_sequence, 62U);
}

TEST_F(Prepare, SaysThatADatasetIsThereAlready) {
  const std::string input = directory_.write("in.txt", random_text(8, 20));
  prepare_quietly(options(input));
  const auto before = contents_of(directory_ / "out");
  PrepareOptions again = options(input);
  again.threads = 1;
  EXPECT_TRUE(prepare_quietly(again).was_there);
  EXPECT_EQ(contents_of(directory_ / "out"), before);

  again.sequences.max_length = 30;
  expect_user_error([&] { prepare_quietly(again); }, "add --overwrite or choose another --output");
  EXPECT_EQ(contents_of(directory_ / "out"), before);
  again.overwrite = true;
  EXPECT_FALSE(prepare_quietly(again).was_there);
  EXPECT_EQ(Dataset(directory_ / "out").max_length(), 30);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out.partial"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out.replaced"));
}

TEST_F(Prepare, TouchesNothingThatIsNotItsOwn) {
  const std::string input = directory_.write("in.txt", "a\n");
  directory_.write("out/precious", "x");
  PrepareOptions given = options(input);
  given.overwrite = true;
  expect_user_error([&] { prepare_quietly(given); }, "exists and is no dataset");
  directory_.write("json/dataset.json", "{}");
  given.output = directory_ / "json";
  expect_user_error([&] { prepare_quietly(given); }, "exists and is no dataset");
  directory_.write("other.partial/precious", "x");
  expect_user_error([&] { prepare_quietly(options(input, "other")); }, "was not left by plenum prepare");
  EXPECT_TRUE(std::filesystem::exists(directory_ / "out/precious"));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "other.partial/precious"));
}

TEST_F(Prepare, ReplacesADatasetOnlyIfItHoldsNothingElse) {
  const std::string input = directory_.write("in.txt", "a\n");
  prepare_quietly(options(input));
  directory_.write("out/notes.txt", "mine");
  directory_.write("out/plan.json", "{}");
  PrepareOptions given = options(input);
  given.overwrite = true;
  expect_user_error([&] { prepare_quietly(given); },
                    "out is not replaced because it holds other files; move it or choose another name: "
                    "notes.txt, plan.json");
  given.inputs = {directory_ / "out/notes.txt"};
  expect_user_error([&] { prepare_quietly(given); }, "notes.txt lies inside the output");
  EXPECT_EQ(io::read_file(directory_ / "out/notes.txt"), "mine");
  EXPECT_TRUE(std::filesystem::exists(directory_ / "out/dataset.json"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out.partial"));
}

TEST_F(Prepare, RefusesToReplaceWhatAppearedAtItsPlaceMeanwhile) {
  const std::string input = directory_.write("in.txt", random_text(3, 30));
  const PrepareOptions given = options(input);
  ActingProgress progress([&] { directory_.write("out/notes.txt", "mine"); });
  expect_user_error([&] { prepare(given, progress); }, "out is not replaced because it holds other files");
  EXPECT_EQ(io::read_file(directory_ / "out/notes.txt"), "mine");
  std::filesystem::remove_all(directory_ / "out");
  RecordingProgress again;
  prepare(given, again);
  EXPECT_THAT(again.notes, Contains("resuming: the text is tokenized already"));
}

TEST_F(Prepare, WritesWhereALinkLeads) {
  const std::string input = directory_.write("in.txt", "a\n");
  std::filesystem::create_directory(directory_ / "disk");
  std::filesystem::create_directory_symlink(directory_ / "disk", directory_ / "out");
  prepare_quietly(options(input));
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "out"));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "disk/dataset.json"));
  std::filesystem::create_symlink("nowhere", directory_ / "lost");
  expect_user_error([&] { prepare_quietly(options(input, "lost")); }, "is a link that leads nowhere");
}

TEST_F(Prepare, RefusesInputThatChangesWhileItIsRead) {
  const std::string text = random_text(3, 60);
  const std::vector<std::function<void(const std::string&)>> changes = {
      [](const std::string& path) { std::ofstream(path, std::ios::app) << "more\n"; },
      [](const std::string& path) { std::filesystem::resize_file(path, 100); },
      [&](const std::string& path) { std::ofstream(path) << std::string(text.size(), 'x'); },
  };
  for (const auto& change : changes) {
    for (const bool trains : {false, true}) {
      const std::string input = directory_.write("in.txt", text);
      PrepareOptions given = options(input);
      if (trains) {
        given.vocab_path.clear();
        given.train_vocab_size = 80;
      }
      ActingProgress progress([&] { change(input); });
      expect_user_error([&] { prepare(given, progress); }, input + " changed while it was read");
      EXPECT_FALSE(std::filesystem::exists(given.output));
      EXPECT_FALSE(std::filesystem::exists(given.output + ".partial"));
    }
  }
}

TEST_F(Prepare, SaysThatARefusedRunIsKeptIfThereIsSomethingToKeep) {
  const PrepareOptions given = options(directory_.write("in.txt", random_text(3, 60) + "caf\xE9\n"));
  expect_user_error([&] { prepare_quietly(given); }, "; what was done is kept in " + given.output +
                                                         ".partial for the next run with the same "
                                                         "input and options");
  EXPECT_TRUE(std::filesystem::exists(given.output + ".partial/journal.json"));
}

TEST_F(Prepare, KeepsInTheDatasetWhatItTookForADocument) {
  for (const char* name : {"in/a.txt", "in/b.txt"})
    directory_.write(name, std::string(name) + "\n\nb\n\nc\n");
  RecordingProgress progress;
  const DatasetDescription chosen = prepare(options(directory_ / "in"), progress).description;
  EXPECT_EQ(chosen.options.at("documents"), "file");
  EXPECT_EQ(chosen.counts.documents(), 2U);
  EXPECT_THAT(progress.notes, ElementsAre(HasSubstr("each .txt file is one, by the look of the text")));
  PrepareOptions given = options(directory_ / "in");
  given.text.documents = DocumentRule::File;
  EXPECT_TRUE(prepare_quietly(given).was_there) << "what was chosen is what could have been given";
  given.text.documents = DocumentRule::BlankLine;
  given.overwrite = true;
  EXPECT_EQ(prepare_quietly(given).description.counts.documents(), 6U);
}

TEST_F(Prepare, RefusesTextOfTwoBytesACharacterAndSaysHowToConvertIt) {
  using namespace std::string_literals;
  const auto expect_refusal = [&](std::string_view name, const std::string& text, std::string_view encoding) {
    PrepareOptions given = options(directory_.write(name, text));
    given.text.invalid = InvalidTextRule::Replace;
    expect_user_error([&] { prepare_quietly(given); },
                      fmt::format("{} is not UTF-8 but {}; convert it: iconv -f {} -t utf-8", name,
                                  encoding.starts_with("utf-16") ? "UTF-16" : "UTF-32", encoding));
  };
  expect_refusal("a.txt", "\xFF\xFEh\0i\0\n\0"s, "utf-16");
  expect_refusal("b.csv", "\xFE\xFF\0t\0e\0x\0t\0\n\0a"s, "utf-16");
  expect_refusal("c.txt", "\xFF\xFE\0\0h\0\0\0"s, "utf-32");
  expect_refusal("d.txt", "h\0e\0l\0l\0o\0 \0\n\0"s, "utf-16le");
  expect_refusal("e.txt.gz", test::gzip("\0h\0e\0l\0l\0o\0 \0\n"s), "utf-16be");
  prepare_quietly(options(directory_.write("f.txt", "a stray \0 and \0 another, no more\n"s)));
}

TEST_F(Prepare, RefusesContradictionsAndTextWithoutWords) {
  const std::string input = directory_.write("in.txt", "a\n");
  const auto expect_refusal = [&](auto change, std::string_view part) {
    PrepareOptions given = options(input);
    change(given);
    expect_user_error([&] { prepare_quietly(given); }, part);
    EXPECT_FALSE(std::filesystem::exists(given.output)) << part;
    EXPECT_FALSE(std::filesystem::exists(given.output + ".partial")) << part;
  };
  expect_refusal([](PrepareOptions& given) { given.vocab_path.clear(); }, "exactly one of");
  expect_refusal([](PrepareOptions& given) { given.train_vocab_size = 100; }, "exactly one of");
  expect_refusal(
      [](PrepareOptions& given) {
        given.sequences.objective = Objective::WithNextSentence;
        given.sequences.cut = CutRule::Token;
      },
      "--split token does not go with");
  expect_refusal([](PrepareOptions& given) { given.sequences.objective = Objective::WithNextSentence; },
                 "at least two documents");
  expect_refusal([&](PrepareOptions& given) { given.inputs = {directory_.write("empty.txt", "\n \n")}; },
                 "no text to train on");
  expect_refusal([&](PrepareOptions& given) { given.inputs = {directory_.path()}; }, "lies inside the input");
  expect_refusal([](PrepareOptions& given) { given.holdout = 1; }, "lower --holdout");
  expect_refusal([&](PrepareOptions& given) { given.inputs = {directory_.write("bad.jsonl", "{}\n{\n")}; },
                 "bad.jsonl:1");
}

TEST_F(Prepare, RefusesWhatIsNotUtf8AndNamesThePlace) {
  const auto expect_refusal = [&](std::string_view name, std::string_view text, std::string_view part) {
    const PrepareOptions given = options(directory_.write(name, text));
    expect_user_error([&] { prepare_quietly(given); }, part);
    EXPECT_FALSE(std::filesystem::exists(given.output)) << name;
  };
  expect_refusal(
      "a.txt", "one\nh\xE9llo\n",
      "a.txt:2: the input is not UTF-8; convert it, for instance by iconv -f latin1 -t utf-8, or add "
      "--invalid-utf8 replace: byte 0xe9 at offset 5");
  expect_refusal("a.csv", "text\n\"a\nb\xE9\"\n", "a.csv:3: the input is not UTF-8");
  expect_refusal("b.csv", "text,\"a\nn\xE9\"\nx,1\n", "b.csv:2: the input is not UTF-8");
  expect_refusal("b.tsv", "\xEF\xBB\xBFtext\t\xE9\nx\t1\n", "byte 0xe9 at offset 8");
  expect_refusal("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\xE9\"}\n", "a.jsonl:2: the input is not UTF-8");
  expect_refusal("b.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\\ud83d\"}\n",
                 "b.jsonl:2: the line escapes half of a surrogate pair");
  expect_refusal("b.txt.gz", test::gzip("one\ntwo \xC3"), "b.txt.gz:2: the input is not UTF-8");
}

TEST_F(Prepare, RefusesWhatIsNotUtf8BeforeItTrainsAVocabulary) {
  PrepareOptions given = options(directory_.write("a.txt", "one\nh\xE9llo\n"));
  given.vocab_path.clear();
  given.train_vocab_size = 100;
  expect_user_error([&] { prepare_quietly(given); }, "a.txt:2: the input is not UTF-8");
}

TEST_F(Prepare, ReplacesAndCountsWhatIsNotUtf8WhenAsked) {
  const std::string clean = random_text(9, 30);
  directory_.write("in/a.txt", clean);
  directory_.write("in/b.txt", clean + "caf\xE9 \xF0\x9F\x98 x\n\n" + clean + "\xFF\n");
  directory_.write("in/d.csv", "text,\xE9\xE9\n" + ("\xE9" + std::string(40, 'a') + ",b\n"));
  directory_.write("in/e.tsv", "text\t\xC3");
  directory_.write("in/c.jsonl", "{\"text\": \"caf\\ud83d\"}\n{\"text\": \"\xE9\xE9 a\"}\n");
  const std::uint64_t line = 1 + static_cast<std::uint64_t>(std::count(clean.begin(), clean.end(), '\n'));
  std::map<std::string, std::string> expected;
  for (const std::size_t block_bytes : {11, 300, 1 << 20}) {
    for (const int threads : {1, 3}) {
      PrepareOptions given = options(directory_ / "in");
      given.text.invalid = InvalidTextRule::Replace;
      given.text.block_bytes = block_bytes;
      given.threads = threads;
      given.overwrite = true;
      const InvalidText invalid = prepare_quietly(given).description.counts.invalid;
      EXPECT_EQ(invalid.places, 6U + 3U + 1U);
      EXPECT_EQ(invalid.bytes, 1U + 3U + 1U + 6U + 2U + 3U + 1U);
      EXPECT_EQ(invalid.first_file, 1U);
      EXPECT_EQ(invalid.first_line, line);
      const InvalidText read = read_dataset_description(given.output).counts.invalid;
      EXPECT_EQ(read.places, invalid.places);
      EXPECT_EQ(read.first_line, invalid.first_line);
      std::map<std::string, std::string> made = contents_of(given.output);
      made.erase("dataset.json");  // its fingerprint knows the size of blocks
      if (expected.empty()) expected = made;
      EXPECT_EQ(made, expected) << threads << " threads, blocks of " << block_bytes;
    }
  }
  // Once replaced is not for ever: the next run is asked again.
  PrepareOptions again = options(directory_ / "in");
  again.text.block_bytes = 1 << 20;
  expect_user_error([&] { prepare_quietly(again); }, "17 bytes were not UTF-8");
  again.text.invalid = InvalidTextRule::Replace;
  EXPECT_TRUE(prepare_quietly(again).was_there);
}

TEST_F(Prepare, GoesOnBehindWhatItRefusedOnceThatMayBeReplaced) {
  const std::string clean = random_text(10, 60);
  const std::string input = directory_.write("in.txt", clean + "caf\xE9\n\n" + clean);
  PrepareOptions given = options(input);
  expect_user_error([&] { prepare_quietly(given); }, "not UTF-8");
  given.text.invalid = InvalidTextRule::Replace;
  const PrepareResult result = prepare_quietly(given);
  EXPECT_GT(result.resumed_bytes, 0U);
  EXPECT_EQ(result.description.counts.invalid.bytes, 1U);
  PrepareOptions at_once = given;
  at_once.output = directory_ / "at_once";
  prepare_quietly(at_once);
  EXPECT_EQ(contents_of(given.output), contents_of(at_once.output));
}

TEST_F(Prepare, LetsOnlyOneRunWriteToAPlace) {
  const std::string input = directory_.write("in.txt", "a\n");
  RecordingProgress progress;
  const PartialDirectory busy(directory_ / "out", "other run", progress);
  expect_user_error([&] { prepare_quietly(options(input)); }, "another run of plenum prepare is writing");
}

}  // namespace
}  // namespace plenum::data
