// Weights of models with the head of a task in Hugging Face directories.

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plenum/describe/bert.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_weights.h"
#include "plenum/model/named_tensors.h"

#include "tests/support/expect_user_error.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace plenum::model {
namespace {

using describe::Task;
using describe::TaskKind;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

const Task kClasses = {.kind = TaskKind::Classification, .labels = {"no", "yes"}, .dropout = {}};
const Task kOtherClasses = {.kind = TaskKind::Classification, .labels = {"down", "up"}, .dropout = {}};
const Task kMoreClasses = {.kind = TaskKind::Classification, .labels = {"a", "b", "c"}, .dropout = {}};
const Task kNumber = {.kind = TaskKind::Regression, .labels = {}, .dropout = {}};
const Task kTags = {.kind = TaskKind::TokenClassification, .labels = {"O", "B"}, .dropout = {}};
const Task kAnswers = {.kind = TaskKind::QuestionAnswering, .labels = {}, .dropout = {}};
const Task kChoices = {.kind = TaskKind::MultipleChoice, .labels = {}, .num_choices = 2, .dropout = {}};

/// A model whose every element differs.
struct CountedModel {
  explicit CountedModel(const describe::ModelConfig& given) : config(given) {
    std::iota(weights.begin(), weights.end(), 1.0F);
  }

  describe::ModelConfig config;
  describe::ParameterTable table{describe::describe_bert(config)};
  std::vector<float> weights = std::vector<float>(static_cast<std::size_t>(table.num_elements()));
};

class TaskWeights : public testing::Test {
 protected:
  TaskWeights() { directory_.write("tokenizer/vocab.txt", "[PAD]\n"); }

  std::string model_path() const { return directory_ / "model"; }

  void write(const CountedModel& model) const {
    write_hugging_face_directory(model_path(),
                                 {.config = model.config,
                                  .table = model.table,
                                  .weights_N = model.weights,
                                  .tokenizer_directory = directory_ / "tokenizer"},
                                 io::Replace::Yes);
  }

  /// Begins `wanted` with what the directory holds, all else -1.
  ImportReport begin(const Task& wanted) {
    begun_.emplace(test::tiny_model_for(wanted));
    std::ranges::fill(begun_->weights, -1.0F);
    return read_weights_for_task(model_path(), wanted, begun_->table, begun_->weights);
  }

  void expect_same(const CountedModel& from, const std::string& name) {
    EXPECT_TRUE(
        std::ranges::equal(elements_of(begun_->table.at(name), begun_->weights),
                           std::span(from.weights)
                               .subspan(static_cast<std::size_t>(from.table.at(name).begin),
                                        static_cast<std::size_t>(from.table.at(name).num_elements()))))
        << name;
  }
  void expect_new(const std::string& name) {
    EXPECT_THAT(elements_of(begun_->table.at(name), begun_->weights), testing::Each(-1.0F)) << name;
  }

  test::TemporaryDirectory directory_;
  std::optional<CountedModel> begun_;
};

TEST_F(TaskWeights, AreReadAsTheyWereWritten) {
  for (const Task& task : {kClasses, kNumber, kTags, kAnswers, kChoices}) {
    SCOPED_TRACE(describe::name_of(task.kind));
    const CountedModel model(test::tiny_model_for(task));
    write(model);
    EXPECT_EQ(read_hugging_face_config(model_path()), model.config);
    const ImportReport report = begin(task);
    EXPECT_THAT(report.new_tensors, IsEmpty());
    EXPECT_THAT(report.unused_tensors, IsEmpty());
    EXPECT_EQ(report.other_head, "");
    for (const describe::Parameter& parameter : model.table.parameters()) expect_same(model, parameter.name);
  }
}

TEST_F(TaskWeights, HaveTheNamesOfTransformers) {
  const auto tensors_of_head = [](const Task& task) {
    std::vector<std::string> names;
    const CountedModel model(test::tiny_model_for(task));
    for (const describe::Parameter& parameter : model.table.parameters()) {
      if (parameter.part == describe::ModelPart::Head)
        names.push_back(fmt::format("{} {}", parameter.name, tensor::to_string(parameter.shape)));
    }
    return names;
  };
  for (const auto& [task, outputs] :
       {std::pair(kMoreClasses, 3), std::pair(kNumber, 1), std::pair(kChoices, 1)}) {
    EXPECT_THAT(tensors_of_head(task), testing::UnorderedElementsAre(
                                           fmt::format("classifier.weight [{}, 4]", outputs),
                                           fmt::format("classifier.bias [{}]", outputs),
                                           "bert.pooler.dense.weight [4, 4]", "bert.pooler.dense.bias [4]"));
  }
  EXPECT_THAT(tensors_of_head(kTags),
              testing::UnorderedElementsAre("classifier.weight [2, 4]", "classifier.bias [2]"));
  EXPECT_THAT(tensors_of_head(kAnswers),
              testing::UnorderedElementsAre("qa_outputs.weight [2, 4]", "qa_outputs.bias [2]"));
}

TEST_F(TaskWeights, BeginWithAPreTrainedEncoderAndPooler) {
  for (const bool has_next_sentence : {false, true}) {
    const CountedModel source(test::tiny_model(has_next_sentence));
    write(source);
    const ImportReport report = begin(kClasses);
    EXPECT_EQ(report.other_head, "") << "there is none that would fit";
    for (const describe::Parameter& parameter : begun_->table.parameters()) {
      if (parameter.part != describe::ModelPart::Head) expect_same(source, parameter.name);
    }
    expect_new("classifier.weight");
    EXPECT_THAT(report.new_tensors, IsSupersetOf({"classifier.weight", "classifier.bias"}));
    EXPECT_THAT(report.unused_tensors, Contains("cls.predictions.bias"));
    if (has_next_sentence) {
      expect_same(source, "bert.pooler.dense.weight");
      EXPECT_THAT(report.unused_tensors, Contains("cls.seq_relationship.weight"));
    } else {
      EXPECT_THAT(report.new_tensors, Contains("bert.pooler.dense.weight"));
    }
  }
}

TEST_F(TaskWeights, TakeAHeadOnlyWhereTaskAndLabelsAgree) {
  const CountedModel source(test::tiny_model_for(kClasses));
  write(source);
  const auto expect_passed_over = [&](const Task& wanted, const std::string& reason) {
    SCOPED_TRACE(reason);
    const ImportReport report = begin(wanted);
    EXPECT_EQ(report.other_head, reason);
    EXPECT_THAT(report.new_tensors, ElementsAre("classifier.weight", "classifier.bias"));
    EXPECT_THAT(report.unused_tensors, IsSupersetOf({"classifier.bias", "classifier.weight"}));
    expect_new("classifier.weight");
    expect_new("classifier.bias");
    expect_same(source, "bert.encoder.layer.1.output.dense.weight");
    if (wanted.kind != TaskKind::TokenClassification) expect_same(source, "bert.pooler.dense.weight");
  };
  expect_passed_over(kOtherClasses, "its labels are no, yes, not down, up");
  expect_passed_over(kMoreClasses, "its labels are no, yes, not a, b, c");
  expect_passed_over(kNumber, "it is for classification");
  expect_passed_over(kTags, "it is for classification");
  expect_passed_over(kChoices, "it is for classification");
  EXPECT_EQ(begin(kAnswers).other_head, "") << "there is none that would fit";
  expect_new("qa_outputs.weight");
}

TEST_F(TaskWeights, GiveTheEncoderToPreTraining) {
  const CountedModel source(test::tiny_model_for(kClasses));
  write(source);
  const describe::ParameterTable masked(describe::describe_bert(test::tiny_model(false)));
  std::vector<float> weights_N(static_cast<std::size_t>(masked.num_elements()));
  const ImportReport report = read_hugging_face_weights(model_path(), masked, weights_N);
  EXPECT_THAT(report.unused_tensors, ElementsAre("bert.pooler.dense.bias", "bert.pooler.dense.weight",
                                                 "classifier.bias", "classifier.weight"));
  EXPECT_THAT(report.new_tensors, Contains("cls.predictions.bias"));
}

TEST_F(TaskWeights, OfUnknownPartsAreRefused) {
  CountedModel source(test::tiny_model_for(kTags));
  write(source);
  source.config.num_layers = 1;
  const describe::ParameterTable shallow(describe::describe_bert(source.config));
  std::vector<float> weights_N(static_cast<std::size_t>(shallow.num_elements()));
  test::expect_user_error([&] { read_weights_for_task(model_path(), kTags, shallow, weights_N); },
                          "has no place in the model that config.json describes");
}

}  // namespace
}  // namespace plenum::model
