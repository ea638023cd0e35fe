#include "plenum/model/hugging_face_task.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plenum/model/hugging_face_config.h"

#include "tests/support/expect_user_error.h"

namespace plenum::model {
namespace {

using describe::Task;
using describe::TaskKind;
using nlohmann::json;

const std::vector<Task> kTasks = {
    {.kind = TaskKind::Classification, .labels = {"neutral", "ja", "\"quoted\" é"}, .dropout = 0.25},
    {.kind = TaskKind::Classification,
     .labels = {"k", "j", "i", "h", "g", "f", "e", "d", "c", "b", "a"},
     .dropout = {}},
    {.kind = TaskKind::Regression, .labels = {}, .dropout = {}},
    {.kind = TaskKind::TokenClassification, .labels = {"O", "B-PER", "I-PER"}, .dropout = 0},
    {.kind = TaskKind::QuestionAnswering, .labels = {}, .dropout = {}},
    {.kind = TaskKind::MultipleChoice, .labels = {}, .dropout = {}},
    {.kind = TaskKind::MultipleChoice, .labels = {}, .num_choices = 4, .dropout = 0.1},
};

/// A config.json of a class, with `more` keys.
std::optional<Task> task_of(const std::string& architecture, const json& more = json::object()) {
  json root = {{"model_type", "bert"}, {"architectures", json::array({architecture})}};
  root.update(more);
  return parse_hugging_face_config(root.dump(), "x.json").task;
}

json printed(const Task& task) {
  describe::ModelConfig config;
  config.task = task;
  return json::parse(print_hugging_face_config(config));
}

TEST(HuggingFaceTask, IsReadAsItWasPrinted) {
  for (const Task& task : kTasks) {
    describe::ModelConfig config;
    config.task = task;
    EXPECT_EQ(parse_hugging_face_config(print_hugging_face_config(config), "x.json"), config)
        << print_hugging_face_config(config);
  }
}

TEST(HuggingFaceTask, IsPrintedAsTransformersNamesIt) {
  json root = printed(kTasks[0]);
  EXPECT_EQ(root["architectures"], json::array({"BertForSequenceClassification"}));
  EXPECT_EQ(root["problem_type"], "single_label_classification");
  EXPECT_EQ(root["id2label"], (json{{"0", "neutral"}, {"1", "ja"}, {"2", "\"quoted\" é"}}));
  EXPECT_EQ(root["label2id"], (json{{"neutral", 0}, {"ja", 1}, {"\"quoted\" é", 2}}));
  EXPECT_EQ(root["classifier_dropout"], 0.25);
  root = printed({.kind = TaskKind::Regression, .labels = {}, .dropout = {}});
  EXPECT_EQ(root["architectures"], json::array({"BertForSequenceClassification"}));
  EXPECT_EQ(root["problem_type"], "regression");
  EXPECT_EQ(root["id2label"].size(), 1U) << "of which transformers takes the number of outputs";
  EXPECT_TRUE(root["classifier_dropout"].is_null());
  EXPECT_EQ(printed(kTasks[3])["architectures"], json::array({"BertForTokenClassification"}));
  EXPECT_FALSE(printed(kTasks[3]).contains("problem_type"));
  EXPECT_EQ(printed(kTasks[4])["architectures"], json::array({"BertForQuestionAnswering"}));
  EXPECT_FALSE(printed(kTasks[4]).contains("id2label"));
  EXPECT_EQ(printed(kTasks[5])["architectures"], json::array({"BertForMultipleChoice"}));
}

TEST(HuggingFaceTask, HasTheDefaultsOfTransformers) {
  EXPECT_EQ(task_of("BertForMaskedLM"), std::nullopt);
  EXPECT_EQ(task_of("BertModel", {{"id2label", {{"0", "a"}, {"1", "b"}}}}), std::nullopt);
  EXPECT_EQ(task_of("BertForSequenceClassification"),
            (Task{.kind = TaskKind::Classification, .labels = {"LABEL_0", "LABEL_1"}, .dropout = {}}));
  EXPECT_EQ(task_of("BertForTokenClassification", {{"num_labels", 3}})->labels,
            (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
  // One output is a number unless it is said otherwise.
  EXPECT_EQ(task_of("BertForSequenceClassification", {{"id2label", {{"0", "LABEL_0"}}}})->kind,
            TaskKind::Regression);
  EXPECT_EQ(task_of("BertForQuestionAnswering", {{"id2label", {{"0", "a"}, {"1", "b"}}}})->labels,
            std::vector<std::string>());
}

TEST(HuggingFaceTask, RefusesWhatContradictsItself) {
  const auto refuse = [](const std::string& architecture, const json& more, const std::string& reason) {
    const std::string message = test::user_error_of([&] { task_of(architecture, more); });
    EXPECT_THAT(message, testing::StartsWith("x.json: "));
    EXPECT_THAT(message, testing::HasSubstr(reason));
    EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n")));
  };
  const std::string sequence = "BertForSequenceClassification";
  const json two = {{"0", "a"}, {"1", "b"}};
  refuse(sequence, {{"architectures", {sequence, "BertForMaskedLM"}}}, "architectures must name one class");
  refuse(sequence, {{"problem_type", "multi_label_classification"}},
         "problem_type \"multi_label_classification\" is not supported");
  refuse(sequence, {{"problem_type", "regression"}, {"id2label", two}}, "does not go with 2 label(s)");
  refuse(sequence, {{"problem_type", "single_label_classification"}, {"num_labels", 1}},
         "does not go with 1 label(s)");
  refuse(sequence, {{"id2label", two}, {"num_labels", 3}}, "id2label has 2 labels and num_labels says 3");
  refuse(sequence, {{"id2label", {{"0", "a"}, {"2", "b"}}}}, "the ids in id2label must be 0 to 1: '2'");
  refuse(sequence, {{"id2label", {{"0", "a"}, {"01", "b"}}}}, "the ids in id2label must be 0 to 1: '01'");
  refuse(sequence, {{"id2label", {{"0", "a"}, {"x", "b"}}}}, "the ids in id2label must be 0 to 1: 'x'");
  refuse(sequence, {{"id2label", {{"0", "a"}, {"1", 7}}}}, "label 1 in id2label must be a text: 7");
  refuse(sequence, {{"id2label", {{"0", "a"}, {"1", "a"}}}}, "two labels 'a'");
  refuse(sequence, {{"id2label", json::array({"a", "b"})}}, "id2label must give each id a label");
  refuse(sequence, {{"id2label", two}, {"label2id", {{"a", 1}, {"b", 0}}}}, "label2id another");
  refuse(sequence, {{"id2label", two}, {"label2id", {{"a", 0}, {"LABEL_1", 1}}}}, "label2id another");
  refuse(sequence, {{"id2label", two}, {"label2id", {{"a", 0}}}}, "label2id has other labels than id2label");
  refuse(sequence, {{"classifier_dropout", "none"}}, "classifier_dropout must be a number: \"none\"");
  refuse(sequence, {{"num_labels", -1}}, "num_labels must be a whole number");
  refuse("BertForQuestionAnswering", {{"num_labels", 3}}, "BertForQuestionAnswering has 2 outputs");
  refuse("BertForMultipleChoice", {{"num_choices", 2.5}}, "num_choices must be a whole number");
}

TEST(HuggingFaceTask, SaysWhyAHeadIsOfAnother) {
  const Task& wanted = kTasks[3];
  EXPECT_EQ(difference_of_heads(wanted, wanted), "");
  EXPECT_EQ(difference_of_heads({}, wanted), "it is of no task");
  EXPECT_EQ(difference_of_heads(kTasks[0], wanted), "it is for classification");
  Task other = wanted;
  std::swap(other.labels[1], other.labels[2]);
  EXPECT_EQ(difference_of_heads(other, wanted), "its labels are O, I-PER, B-PER, not O, B-PER, I-PER");
  EXPECT_EQ(difference_of_heads(kTasks[0], kTasks[1]),
            "its labels are neutral, ja, \"quoted\" é, not k, j, i, h, g, f and 5 more");
  other = wanted;
  other.dropout = 0.5;
  EXPECT_EQ(difference_of_heads(other, wanted), "") << "the weights are the same";
}

}  // namespace
}  // namespace plenum::model
