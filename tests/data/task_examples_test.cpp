#include "plenum/data/tasks/task_examples.h"

#include <gtest/gtest.h>

#include "plenum/data/tasks/answer_words.h"

#include "tests/data/golden.h"
#include "tests/support/compress.h"
#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"

namespace plenum::data {
namespace {

using describe::TaskKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Reads text as if it were a file of that name.
class TaskFiles {
 public:
  TaskExamples train(const std::string& name, std::string_view text, TaskKind kind,
                     const TaskOptions& options = {}) const {
    return read_training_examples(directory_.write(name, text), kind, options);
  }
  std::string error(const std::string& name, std::string_view text, TaskKind kind,
                    const TaskOptions& options = {}) const {
    return without_directory(test::user_error_of([&] { train(name, text, kind, options); }));
  }
  TaskExamples read(const std::string& name, std::string_view text, const describe::Task& task,
                    Labelled labelled, const TaskOptions& options = {}) const {
    return read_examples(directory_.write(name, text), task, options, labelled);
  }
  std::string without_directory(std::string text) const {
    const std::string prefix = directory_.path() + "/";
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
      text.erase(at, prefix.size());
    return text;
  }

 private:
  test::TemporaryDirectory directory_;
};

TEST(TaskExamples, AreReadFromEveryFormat) {
  const TaskFiles files;
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"a.tsv", "idx\tsentence\tlabel\n7\tHe said \"no\".\tyes\n8\t\"Go\tno\n"},
           {"a.csv", "idx,label,sentence\r\n7,yes,\"He said \"\"no\"\".\"\r\n8,no,\"\"\"Go\"\r\n"},
           {"a.jsonl",
            "{\"sentence\":\"He said \\\"no\\\".\",\"label\":\"yes\",\"idx\":7}\n\n"
            "{\"label\":\"no\",\"sentence\":\"\\\"Go\",\"idx\":8}\n"},
           {"b.json",
            "[{\"sentence\":\"He said \\\"no\\\".\",\"label\":\"yes\",\"idx\":7},\n"
            "{\"label\":\"no\",\"sentence\":\"\\\"Go\",\"idx\":8}]\n"},
           {"c.json",
            "{\"sentence\":\"He said \\\"no\\\".\",\"label\":\"yes\",\"idx\":7}\n"
            "{\"label\":\"no\",\"sentence\":\"\\\"Go\",\"idx\":8}\n"},
           {"d.json",
            "\xEF\xBB\xBF{\"data\":[{\"sentence\":\"He said \\\"no\\\".\",\"label\":\"yes\",\"idx\":7},\n"
            "{\"label\":\"no\",\"sentence\":\"\\\"Go\",\"idx\":8}]}\n"}}) {
    const TaskExamples examples = files.train(name, text, TaskKind::Classification);
    ASSERT_EQ(examples.examples.size(), 2U) << name;
    EXPECT_EQ(examples.examples[0].text, "He said \"no\".") << name;
    EXPECT_EQ(examples.examples[1].text, "\"Go") << name;
    EXPECT_EQ(examples.examples[1].id, "8") << name;
    EXPECT_THAT(examples.task.labels, ElementsAre("no", "yes")) << name;
    EXPECT_EQ(examples.examples[0].label, 1) << name;
    EXPECT_TRUE(examples.is_labelled) << name;
    EXPECT_FALSE(examples.has_pairs) << name;
    ASSERT_EQ(examples.remarks.size(), 1U) << name;
    EXPECT_THAT(examples.remarks[0], HasSubstr("texts from 'sentence', labels from 'label', ids from 'idx'"));
  }
}

TEST(TaskExamples, AreUnpacked) {
  const test::TemporaryDirectory directory;
  const std::string text = "text,label\nhello,1\nbye,0\n";
  const TaskOptions options;
  for (const std::string& path :
       {directory.write("a.csv.gz", test::gzip(text)), directory.write("a.csv.zst", test::zstd(text))})
    EXPECT_EQ(read_training_examples(path, TaskKind::Classification, options).examples.size(), 2U) << path;
}

TEST(TaskExamples, HaveColumnsByNumberWhereThereIsNoHeader) {
  const TaskFiles files;
  TaskOptions options;
  options.text_column = "4";
  options.label_column = "2";
  const TaskExamples examples =
      files.train("cola.tsv", "gj04\t1\t\tOne.\ngj04\t0\t*\tTwo.\r\n", TaskKind::Classification, options);
  ASSERT_EQ(examples.examples.size(), 2U);
  EXPECT_EQ(examples.examples[1].text, "Two.");
  EXPECT_EQ(examples.examples[1].id, "1");
  EXPECT_THAT(examples.task.labels, ElementsAre("0", "1"));
  options.text_column = "5";
  EXPECT_THAT(files.error("cola.tsv", "gj04\t1\t\tOne.\n", TaskKind::Classification, options),
              HasSubstr("cola.tsv:1: there is no column '5'"));
  options.text_column = "text";
  EXPECT_THAT(files.error("cola.tsv", "a\tb\n", TaskKind::Classification, options),
              HasSubstr("all by name or, for files without a header, all by number: text, 2"));
}

TEST(TaskExamples, ReadQuotesOfTabSeparatedFilesAsTheyStand) {
  const TaskFiles files;
  const std::string text = "text\tlabel\n\"a\"\tx\nb\ty\n";
  EXPECT_EQ(files.train("a.tsv", text, TaskKind::Classification).examples[0].text, "\"a\"");
  TaskOptions options;
  options.quoted_tsv = true;
  EXPECT_EQ(files.train("a.tsv", text, TaskKind::Classification, options).examples[0].text, "a");
}

TEST(TaskExamples, ChooseUsualColumnsOrTheNamedOnes) {
  const TaskFiles files;
  const TaskExamples usual =
      files.train("a.csv", "label,hypothesis,premise,text\nx,2,1,3\ny,2,1,3\n", TaskKind::Classification);
  EXPECT_EQ(usual.examples[0].text, "1");
  EXPECT_EQ(usual.examples[0].pair, "2");
  EXPECT_TRUE(usual.has_pairs);
  TaskOptions options;
  options.text_column = "text";
  const TaskExamples named = files.train("a.csv", "label,hypothesis,premise,text\nx,2,1,3\ny,2,1,3\n",
                                         TaskKind::Classification, options);
  EXPECT_EQ(named.examples[0].text, "3");
  EXPECT_FALSE(named.has_pairs);
  options.text_column = "txt";
  EXPECT_THAT(
      files.error("a.csv", "label,text\nx,3\n", TaskKind::Classification, options),
      HasSubstr("a.csv:2: there is no column 'txt'; did you mean 'text'?; choose one of label, text by "
                "--text-column"));
}

TEST(TaskExamples, NumberLabelsInAnOrderOfTheirOwn) {
  const TaskFiles files;
  const auto labels = [&](std::string_view text) {
    return files.train("a.csv", text, TaskKind::Classification).task.labels;
  };
  EXPECT_THAT(labels("text,label\na,10\nb,9\nc,-1\n"), ElementsAre("-1", "9", "10"));
  EXPECT_THAT(labels("text,label\na,10\nb,9\nc,x\n"), ElementsAre("10", "9", "x"));
  EXPECT_THAT(labels("text,label\na,1.0\nb,01\n"), ElementsAre("01", "1.0"));
}

TEST(TaskExamples, OfDevelopmentHaveTheLabelsOfTraining) {
  const TaskFiles files;
  describe::Task task;
  task.labels = {"contradiction", "entailment"};
  const TaskExamples dev = files.read("dev.csv", "text,label\na,entailment\n", task, Labelled::Required);
  EXPECT_EQ(dev.examples[0].label, 1);
  EXPECT_THAT(files.without_directory(test::user_error_of([&] {
    files.read("dev.csv", "text,label\na,entailment\nb,entailmemt\n", task, Labelled::Required);
  })),
              HasSubstr("dev.csv:3: the label 'entailmemt' is none of those of training; did you mean "
                        "'entailment'?: contradiction, entailment"));
}

TEST(TaskExamples, OfPredictionMayLackLabels) {
  const TaskFiles files;
  describe::Task task;
  task.labels = {"0", "1"};
  const auto read = [&](std::string_view text, const TaskOptions& options = {}) {
    return files.read("test.csv", text, task, Labelled::Optional, options);
  };
  EXPECT_FALSE(read("text\na\n").is_labelled);
  EXPECT_FALSE(read("text,label\na,-1\n").is_labelled);
  const TaskExamples some = read("text,label\na,1\nb,\n");
  EXPECT_FALSE(some.is_labelled);
  EXPECT_TRUE(some.examples[0].is_labelled);
  EXPECT_THAT(some.remarks.back(), HasSubstr("1 of 2 examples have no label"));
  EXPECT_TRUE(read("text,label\na,1\n").is_labelled);
  TaskOptions without;
  without.label_column = "none";
  EXPECT_FALSE(read("text,label\na,anything\n", without).is_labelled);
}

TEST(TaskExamples, OfRegressionHaveFiniteNumbers) {
  const TaskFiles files;
  const TaskExamples examples =
      files.train("a.tsv", "sentence1\tsentence2\tscore\na\tb\t4.25\nc\td\t-1\n", TaskKind::Regression);
  EXPECT_EQ(examples.examples[0].number, 4.25);
  EXPECT_EQ(examples.examples[1].number, -1);
  describe::Task task;
  task.kind = TaskKind::Regression;
  EXPECT_FALSE(files.read("t.tsv", "text\tscore\na\t-1\nb\t-1.0\n", task, Labelled::Optional).is_labelled);
  EXPECT_TRUE(files.read("t.tsv", "text\tscore\na\t-1\nb\t1\n", task, Labelled::Optional).is_labelled);
  for (const char* number : {"nan", "inf", "1e39", "much"})
    EXPECT_THAT(files.error("a.tsv", std::string("text\tscore\na\t") + number + "\n", TaskKind::Regression),
                HasSubstr("a.tsv:2: "))
        << number;
}

TEST(TaskExamples, OfTokensComeAsListsOrAWordALine) {
  const TaskFiles files;
  const TaskExamples lists = files.train(
      "a.jsonl",
      "{\"tokens\":[\"Ann\",\"sings\"],\"ner_tags\":[1,0]}\n{\"tokens\":[\"x\"],\"ner_tags\":[2]}\n",
      TaskKind::TokenClassification);
  EXPECT_THAT(lists.examples[0].words, ElementsAre("Ann", "sings"));
  EXPECT_THAT(lists.examples[0].tags, ElementsAre(1, 0));
  EXPECT_THAT(lists.task.labels, ElementsAre("0", "1", "2"));

  const std::string conll =
      "-DOCSTART- -X- O O\n\nAnn NNP I-NP B-PER\nsings VBZ I-VP O\n\n\nYes UH O O\r\n-DOCSTART- -X- O O\nNo "
      "UH O "
      "O";
  const TaskExamples lines = files.train("a.conll", conll, TaskKind::TokenClassification);
  ASSERT_EQ(lines.examples.size(), 3U);
  EXPECT_THAT(lines.examples[0].words, ElementsAre("Ann", "sings"));
  EXPECT_THAT(lines.task.labels, ElementsAre("B-PER", "O"));
  EXPECT_THAT(lines.examples[0].tags, ElementsAre(0, 1));
  EXPECT_THAT(lines.examples[1].words, ElementsAre("Yes"));
  EXPECT_THAT(lines.examples[2].words, ElementsAre("No"));
  EXPECT_THAT(lines.remarks, ElementsAre(HasSubstr("passing over 2 lines of -DOCSTART-")));

  TaskOptions options;
  options.label_column = "2";
  EXPECT_THAT(files.train("a.txt", conll, TaskKind::TokenClassification, options).task.labels,
              ElementsAre("NNP", "UH", "VBZ"));
  const TaskExamples tabs = files.train("a.tsv", "New York\tB\nis\tO\n", TaskKind::TokenClassification);
  EXPECT_THAT(tabs.examples[0].words, ElementsAre("New York", "is"));
  describe::Task task;
  task.kind = TaskKind::TokenClassification;
  task.labels = {"B", "O"};
  EXPECT_FALSE(files.read("a.conll", "Ann\nsings\n", task, Labelled::Optional).is_labelled);
}

constexpr const char* kSquad =
    R"({"version":"v2.0","data":[{"title":"T","paragraphs":[{"context":"Café Zürich opened in 1924.","qas":[)"
    R"({"id":"q1","question":"When?","answers":[{"text":"1924","answer_start":22},)"
    R"({"text":"in 1924","answer_start":19}]},)"
    R"({"id":"q2","question":"Why?","is_impossible":true,"answers":[]}]}]}]})";

TEST(TaskExamples, OfQuestionsComeAsSquadHasThem) {
  const TaskFiles files;
  const TaskExamples nested = files.train("squad.json", kSquad, TaskKind::QuestionAnswering);
  ASSERT_EQ(nested.examples.size(), 2U);
  EXPECT_EQ(nested.examples[0].id, "q1");
  ASSERT_EQ(nested.examples[0].answers.size(), 2U);
  const AnswerSpan answer = nested.examples[0].answers[0];
  EXPECT_EQ(nested.examples[0].pair.substr(answer.begin, answer.text.size()), "1924");
  EXPECT_EQ(answer.begin, 24U) << "two letters of two bytes stand before it";
  EXPECT_THAT(nested.examples[1].answers, IsEmpty());
  EXPECT_TRUE(nested.may_lack_answer);

  const TaskExamples flat =
      files.train("squad.jsonl",
                  R"({"id":"q1","question":"When?","context":"Café Zürich opened in 1924.",)"
                  R"("answers":{"text":["1924"],"answer_start":[22]}})",
                  TaskKind::QuestionAnswering);
  EXPECT_THAT(flat.examples[0].answers, ElementsAre(answer));
  EXPECT_FALSE(flat.may_lack_answer);
  const TaskExamples quoted = files.train(
      "squad.csv",
      "question,context,answers\nWhen?,In 1924.,\"{\"\"text\"\":\"\"1924\"\",\"\"answer_start\"\":3}\"\n",
      TaskKind::QuestionAnswering);
  EXPECT_THAT(quoted.examples[0].answers, ElementsAre(AnswerSpan{.begin = 3, .text = "1924"}));
}

TEST(TaskExamples, OfChoicesHaveAsManyEach) {
  const TaskFiles files;
  const TaskExamples swag = files.train(
      "swag.csv", "sent1,sent2,ending0,ending1,label\nShe stands.,She,sits,runs,1\nHe.,Then,a,b,0\n",
      TaskKind::MultipleChoice);
  EXPECT_EQ(swag.task.num_choices, 2);
  EXPECT_THAT(swag.examples[0].choices, ElementsAre("She sits", "She runs"));
  EXPECT_EQ(swag.examples[0].text, "She stands.");
  EXPECT_EQ(swag.examples[0].label, 1);
  EXPECT_TRUE(swag.has_pairs);
  const TaskExamples race =
      files.train("race.jsonl", R"({"article":"A.","question":"Q?","options":["x","y","z"],"answer":"C"})",
                  TaskKind::MultipleChoice);
  EXPECT_THAT(race.examples[0].choices, ElementsAre("Q? x", "Q? y", "Q? z"));
  EXPECT_EQ(race.examples[0].label, 2);
  EXPECT_THAT(files.error("race.jsonl",
                          "{\"text\":\"A\",\"choices\":[\"x\",\"y\"],\"label\":0}\n"
                          "{\"text\":\"A\",\"choices\":[\"x\",\"y\",\"z\"],\"label\":0}\n",
                          TaskKind::MultipleChoice),
              HasSubstr("race.jsonl:2: the example has 3 choices, others have 2"));
  EXPECT_THAT(files.error("race.jsonl", "{\"text\":\"A\",\"choices\":[\"x\",\"y\"],\"label\":2}\n",
                          TaskKind::MultipleChoice),
              HasSubstr("race.jsonl:1: the right choice is '2', but must be a number from 0 to 1"));
}

/// A file that is refused, and what its message says.
struct RefusedFile {
  TaskKind kind;
  const char* name;
  std::string_view text;
  const char* message;
};

TEST(TaskExamples, NameFileAndLineOfWhatTheyRefuse) {
  const TaskFiles files;
  constexpr TaskKind kClasses = TaskKind::Classification;
  constexpr TaskKind kWords = TaskKind::TokenClassification;
  constexpr TaskKind kQuestions = TaskKind::QuestionAnswering;
  constexpr TaskKind kChoices = TaskKind::MultipleChoice;
  const RefusedFile cases[] = {
      {kClasses, "a.csv", "text,label\n", "a.csv has no examples"},
      {kClasses, "a.csv", "", "a.csv has no examples"},
      {kClasses, "a.csv", "text,label\na\n", "a.csv:2: the record has 1 fields, but the header has 2"},
      {kClasses, "a.csv", "text,label\n\"a,x\n", "a.csv:2: a quoted field is not closed"},
      {kClasses, "a.csv", "text,text\na,x\n", "a.csv:1: the header has the column 'text' twice"},
      {kClasses, "a.csv", "text,label\na,x\nb,\n", "a.csv:3: the example has no label"},
      {kClasses, "a.csv", "text,label\na,x\nb,x\n", "all examples have the label 'x'"},
      {kClasses, "a.csv", "txt,label\na,x\n",
       "none of the columns txt, label has the name of a text; give --text-column, by number if the file has "
       "no header"},
      {kClasses, "a.csv", "text,lab\na,x\n",
       "none of the columns text, lab has the name of a label; give --label-column, by number if the file "
       "has no header"},
      {kClasses, "a.csv", "text,label\n\xFF,x\n", "a.csv:2: the input is not UTF-8"},
      {kClasses, "a.md", "text\n", "cannot tell the format of a.md by its name"},
      {kClasses, "a.jsonl", "{\"text\":\"a\",\"label\":1}\n{\"text\":\n",
       "a.jsonl:2: this is not valid JSON"},
      {kClasses, "a.jsonl", "[1]\n", "a.jsonl:1: an example must be a JSON object"},
      {kClasses, "a.jsonl", "{\"text\":1,\"label\":1}\n", "a.jsonl:1: the field 'text' must be text"},
      {kClasses, "a.jsonl", "{\"text\":\"a\",\"label\":[]}\n",
       "a.jsonl:1: the field 'label' must be text or"},
      {kClasses, "a.json", "{\"data\":1}", "a.json: this must be an object with a list 'data'"},
      {kWords, "a.jsonl", "{\"tokens\":[\"a\"],\"tags\":[]}\n", "a.jsonl:1: there are 1 words, but 0"},
      {kWords, "a.jsonl", "{\"tokens\":[],\"tags\":[]}\n", "a.jsonl:1: the example has no words"},
      {kWords, "a.conll", "a b\nc\n", "a.conll:2: the line has 1 columns, but the first has 2"},
      {kWords, "a.conll", "a\n", "lines must have a word and a tag"},
      {kWords, "a.conll", "a\t\n", "a.conll:1: a word has an empty tag"},
      {kQuestions, "a.jsonl", "{\"question\":\"q\",\"context\":\"abc\",\"answers\":[{\"text\":\"b\"}]}\n",
       "a.jsonl:1: an answer must be an object with text and answer_start"},
      {kQuestions, "a.jsonl",
       "{\"question\":\"q\",\"context\":\"abc\",\"answers\":[{\"text\":\"b\",\"answer_start\":0}]}\n",
       "a.jsonl:1: the answer 'b' does not stand at character 0 of the context"},
      {kQuestions, "a.jsonl",
       "{\"question\":\"q\",\"context\":\"abc\",\"answers\":{\"text\":[\"b\"],\"answer_start\":[9]}}\n",
       "a.jsonl:1: the answer 'b' does not stand at character 9"},
      {kQuestions, "a.jsonl", "{\"question\":\"q\",\"answers\":[]}\n",
       "a.jsonl:1: none of the columns answers, question has the name of a text"},
      {kQuestions, "a.json", "{\"data\":[{\"paragraphs\":[{\"qas\":[{}]}]}]}",
       "a.json: data[0].paragraphs[0].qas[0]: there must be a question, and a context"},
      {kChoices, "a.csv", "text,choice1,label\na,x,0\n", "a.csv:2: the field 'choice1' must be a list"},
  };
  for (const RefusedFile& one : cases)
    EXPECT_THAT(files.error(one.name, one.text, one.kind), HasSubstr(one.message)) << one.text;
}

TEST(TaskExamples, HaveNoTwoColumnsOfOneNameHoweverManyThereAre) {
  const TaskFiles files;
  std::string header = "text,label";
  std::string record = ",x";
  for (int i = 0; i < 20'000; ++i) {
    header += ",c" + std::to_string(i);
    record += ",";
  }
  EXPECT_EQ(files
                .train("a.csv", header + ",,\na" + record + ",,\nb,y" + record.substr(2) + ",,\n",
                       TaskKind::Classification)
                .examples.size(),
            2U)
      << "columns without a name are as many as they like";
  EXPECT_EQ(
      files.error("a.csv", header + ",c7,c3\n", TaskKind::Classification),
      "a.csv:1: the header has the column 'c7' twice; if the file has no header, give columns by number, "
      "such as --text-column 1");
}

TEST(TaskExamples, ReplaceInvalidBytesIfAsked) {
  const TaskFiles files;
  TaskOptions options;
  options.invalid = InvalidTextRule::Replace;
  const TaskExamples examples =
      files.train("a.csv", "text,label\n\xFF,x\nb,y\n", TaskKind::Classification, options);
  EXPECT_EQ(examples.examples[0].text, "\xEF\xBF\xBD");
  EXPECT_THAT(examples.remarks.back(), HasSubstr("1 places that are not UTF-8"));
}

TEST(TaskOptions, AreSetByNameAndGoWithTheTask) {
  TaskOptions options;
  const base::OptionTable table = options.table();
  table.find("text-column")->set({"4"});
  table.find("choice-columns")->set({"a", "b"});
  table.find("too-long")->set({"refuse"});
  table.find("stride")->set({"64"});
  EXPECT_EQ(options.text_column, "4");
  EXPECT_THAT(options.choice_columns, ElementsAre("a", "b"));
  EXPECT_THAT(test::user_error_of([&] { options.check(TaskKind::Classification); }),
              HasSubstr("--choice-columns goes with --task multiple-choice"));
  options.choice_columns.clear();
  EXPECT_THAT(test::user_error_of([&] { options.check(TaskKind::Classification); }), HasSubstr("--stride"));
  EXPECT_THAT(test::user_error_of([&] { options.check(TaskKind::QuestionAnswering); }),
              HasSubstr("--too-long refuse does not go with"));
  options.too_long = TooLong::Truncate;
  options.check(TaskKind::QuestionAnswering);
  EXPECT_EQ(options.max_length_for(TaskKind::QuestionAnswering, 512), 384);
  EXPECT_EQ(options.max_length_for(TaskKind::QuestionAnswering, 128), 128);
  EXPECT_EQ(options.max_length_for(TaskKind::Classification, 512), 128);
  EXPECT_EQ(options.max_length_for(TaskKind::Classification, 64), 64);
  options.max_length = 600;
  EXPECT_THAT(test::user_error_of([&] { options.max_length_for(TaskKind::Classification, 512); }),
              HasSubstr("give --max-length 512 or less"));
}

TEST(AnswerWords, AreThoseOfSquadsScript) {
  const nlohmann::json cases = read_golden("scores.json").at("answers").at("words");
  for (const nlohmann::json& one : cases) {
    EXPECT_EQ(answer_words(one.at("text").get<std::string>()), one.at("words").get<score::AnswerWords>())
        << one;
  }
}

TEST(AnswerWords, AreScoredAsSquadsScriptScoresThem) {
  const nlohmann::json pairs = read_golden("scores.json").at("answers").at("pairs");
  ASSERT_GT(pairs.size(), 100U);
  for (const nlohmann::json& one : pairs) {
    std::vector<score::AnswerWords> expected;
    for (const nlohmann::json& answer : one.at("expected"))
      expected.push_back(answer_words(answer.get<std::string>()));
    const score::AnswerWords predicted = answer_words(one.at("predicted").get<std::string>());
    EXPECT_EQ(score::exact_match(predicted, expected), one.at("exact_match").get<double>()) << one;
    EXPECT_NEAR(score::word_f1(predicted, expected), one.at("f1").get<double>(), 1e-12) << one;
  }
}

}  // namespace
}  // namespace plenum::data
