#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "plenum/data/batches/evaluation_batches.h"
#include "plenum/data/batches/step_batches.h"
#include "plenum/data/tasks/predictions.h"
#include "plenum/data/tasks/task_scores.h"
#include "plenum/describe/objective.h"

#include "tests/data/batch_fixture.h"
#include "tests/data/task_fixture.h"
#include "tests/support/expect_user_error.h"

namespace plenum::data {
namespace {

using describe::TaskKind;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMaxLength = 40;

describe::ModelConfig model_for(const TaskSequences& sequences) {
  describe::ModelConfig model = describe::preset("bert-tiny");
  model.vocabulary = sequences.vocabulary().size;
  model.max_positions = sequences.max_length();
  model.task = sequences.examples().task;
  return model;
}

TrainingDataOptions steps_of(Layout layout, OrderChoice order, const MicroBatchCut& cut) {
  TrainingDataOptions options;
  options.layout = layout;
  options.order_choice = order;
  options.global_batch = "13";
  options.micro_batch_tokens = cut.tokens;
  options.micro_batches = cut.count;
  return options;
}

void expect_planned(const batch::StepBatch& batch, const batch::Capacity& capacity) {
  for (const batch::MicroBatch& micro_batch : batch.micro_batches) {
    EXPECT_LE(micro_batch.num_rows, capacity.rows);
    EXPECT_LE(std::ssize(micro_batch.starts), capacity.sequences);
    EXPECT_LE(std::ssize(micro_batch.objective(0).rows), capacity.labels[0]);
    EXPECT_LE(micro_batch.objectives.size(), 1U);
    for (const std::int32_t length : micro_batch.lengths) EXPECT_LE(length, capacity.max_length);
    for (std::size_t row = 1; row < micro_batch.objective(0).rows.size(); ++row)
      EXPECT_LT(micro_batch.objective(0).rows[row - 1], micro_batch.objective(0).rows[row]);
  }
}

/// The choices of an example are next to each other, in their order.
void expect_examples_whole(const batch::MicroBatch& micro_batch, std::int64_t parts) {
  for (std::size_t s = 0; s < micro_batch.samples.size(); ++s) {
    const std::int64_t part = micro_batch.samples[s] % parts;
    EXPECT_EQ(part, static_cast<std::int64_t>(s) % parts);
    if (part > 0) {
      EXPECT_EQ(micro_batch.samples[s], micro_batch.samples[s - 1] + 1);
    }
  }
}

TEST(TaskBatches, AreTheSameInEveryLayoutOnAnyRanksAndMicroBatches) {
  const Tokenizer tokenizer = golden_tokenizer();
  for (const TaskKind kind : kAllTasks) {
    const TaskExamples examples = random_examples(kind, 60);
    const TaskSequences sequences(examples, tokenizer, kMaxLength, {});
    const auto parts = sequences.task_labels()->sequences_per_example();
    for (const OrderChoice order : {OrderChoice::Sequences, OrderChoice::Packs}) {
      const StepBatchSource reference(sequences, steps_of(Layout::Unpadded, order, {}), model_for(sequences),
                                      1, 7);
      for (const Layout layout : {Layout::Padded, Layout::Packed, Layout::Unpadded}) {
        for (const MicroBatchCut& cut :
             {MicroBatchCut{}, MicroBatchCut{.tokens = 130}, MicroBatchCut{.count = 3}}) {
          const std::size_t num_ranks = cut.count ? 2 : 3;
          const StepBatchSource source(sequences, steps_of(layout, order, cut), model_for(sequences),
                                       num_ranks, 7);
          ASSERT_EQ(source.steps_per_epoch(), reference.steps_per_epoch());
          for (std::uint64_t step = 0; step < source.steps_per_epoch(); ++step) {
            const std::vector<batch::StepBatch> batches = source.make(step);
            EXPECT_EQ(collect(batches), collect(reference.make(step)))
                << describe::name_of(kind) << " " << name_of(layout) << " step " << step;
            for (const batch::StepBatch& batch : batches) {
              EXPECT_EQ(batch.global.labels, reference.make(step).front().global.labels);
              EXPECT_EQ(batch.global.squared_lengths, reference.make(step).front().global.squared_lengths);
              expect_planned(batch, source.capacity());
              for (const batch::MicroBatch& one : batch.micro_batches) expect_examples_whole(one, parts);
            }
          }
        }
      }
    }
  }
}

TEST(TaskBatches, HaveAsManyExamplesAsAskedAndEachOnceInAnEpoch) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples examples = random_examples(TaskKind::MultipleChoice, 60);
  const TaskSequences sequences(examples, tokenizer, kMaxLength, {});
  const StepBatchSource source(sequences, steps_of(Layout::Packed, OrderChoice::Sequences, {}),
                               model_for(sequences), 2, 7);
  std::map<std::int64_t, int> times;
  for (std::uint64_t step = 0; step < source.steps_per_epoch(); ++step) {
    const auto seen = collect(source.make(step));
    if (step + 2 < source.steps_per_epoch()) {
      EXPECT_EQ(seen.size(), 13U * 3);
    }
    for (const auto& [sample, unused] : seen) ++times[sample];
  }
  EXPECT_EQ(times.size(), 60U * 3);
  for (const auto& [sample, count] : times) EXPECT_EQ(count, 1);
}

TEST(TaskBatches, PackAStepsOwnSequencesIntoFewRows) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples examples = random_examples(TaskKind::Classification, 200);
  const TaskSequences sequences(examples, tokenizer, kMaxLength, {});
  const auto rows_of = [&](Layout layout) {
    const StepBatchSource source(sequences, steps_of(layout, OrderChoice::Sequences, {}),
                                 model_for(sequences), 1, 7);
    std::int64_t rows = 0;
    const batch::StepBatch batch = source.make(0).front();
    for (const batch::MicroBatch& micro_batch : batch.micro_batches) rows += micro_batch.num_rows;
    return rows;
  };
  EXPECT_EQ(rows_of(Layout::Packed) % kMaxLength, 0);
  EXPECT_LT(rows_of(Layout::Packed), rows_of(Layout::Padded));
  EXPECT_GE(rows_of(Layout::Packed), rows_of(Layout::Unpadded));
}

TEST(TaskBatches, GoWithAModelForTheTask) {
  const Tokenizer tokenizer = golden_tokenizer();
  const TaskExamples examples = random_examples(TaskKind::QuestionAnswering, 9);
  const TaskSequences sequences(examples, tokenizer, kMaxLength, {});
  describe::ModelConfig model = model_for(sequences);
  require_fit(sequences, model);
  model.max_positions = kMaxLength - 1;
  EXPECT_THAT(test::user_error_of([&] { require_fit(sequences, model); }), HasSubstr("give --max-length 39"));
  model.max_positions = kMaxLength;
  model.num_segments = 1;
  EXPECT_THAT(test::user_error_of([&] { require_fit(sequences, model); }), HasSubstr("has pairs of texts"));
  model.num_segments = 2;
  model.task = task_of(TaskKind::Regression);
  EXPECT_THROW(require_fit(sequences, model), base::InternalError);
}

/// Logits that tell which row of which sample they are of.
float logit_of(std::int64_t sample, std::int64_t position, std::size_t output) {
  const base::RandomFunction random(31, base::Purpose::SyntheticText);
  return static_cast<float>(random(static_cast<std::uint64_t>(sample), static_cast<std::uint32_t>(position),
                                   static_cast<std::uint32_t>(output))[0] %
                            4096);
}

void add_logits(const batch::MicroBatch& batch, std::size_t num_outputs, TaskLogits& logits) {
  std::vector<float> values;
  for (const std::int32_t row : batch.objective(0).rows) {
    const auto index = static_cast<std::size_t>(row);
    for (std::size_t output = 0; output < num_outputs; ++output)
      values.push_back(logit_of(batch.row_samples[index], batch.positions[index], output));
  }
  values.resize(values.size() + 5, -1);  // rows that were added by rounding up
  logits.add(batch, values);
}

TEST(TaskLogits, AreTheSameFromEvaluationAndFromStepsOfAnyRank) {
  const Tokenizer tokenizer = golden_tokenizer();
  for (const TaskKind kind : kAllTasks) {
    const TaskExamples examples = random_examples(kind, 30);
    const TaskSequences sequences(examples, tokenizer, kMaxLength, {});
    const auto num_outputs = static_cast<std::size_t>(describe::num_outputs(examples.task));
    TaskLogits evaluated(sequences);
    const EvaluationBatches batches(sequences, {.micro_batch_tokens = 150});
    for (std::size_t i = 0; i < batches.size(); ++i) {
      EXPECT_LE(std::ssize(batches.make(i).objective(0).rows), batches.capacity().labels[0]);
      add_logits(batches.make(i), num_outputs, evaluated);
    }
    std::vector<float> summed(evaluated.values().size());
    const StepBatchSource source(sequences, steps_of(Layout::Padded, OrderChoice::Sequences, {}),
                                 model_for(sequences), 2, 3);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      TaskLogits of_rank(sequences);
      for (std::uint64_t step = 0; step < source.steps_per_epoch(); ++step) {
        const batch::StepBatch of_step = source.make(step, base::Rank::at(rank));
        for (const batch::MicroBatch& batch : of_step.micro_batches) add_logits(batch, num_outputs, of_rank);
      }
      for (std::size_t i = 0; i < summed.size(); ++i) summed[i] += of_rank.values()[i];
    }
    EXPECT_TRUE(std::ranges::equal(summed, evaluated.values())) << describe::name_of(kind);
    EXPECT_FALSE(summed.empty());
  }
}

TaskLogits logits_by(const TaskSequences& sequences, auto logit) {
  TaskLogits logits(sequences);
  const EvaluationBatches batches(sequences, {});
  const auto num_outputs = static_cast<std::size_t>(describe::num_outputs(sequences.examples().task));
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const batch::MicroBatch batch = batches.make(i);
    std::vector<float> values;
    for (std::size_t row = 0; row < batch.objective(0).rows.size(); ++row) {
      for (std::size_t output = 0; output < num_outputs; ++output)
        values.push_back(logit(batch, row, output));
    }
    logits.add(batch, values);
  }
  return logits;
}

TEST(Predictions, AreRightWhereLogitsAreThoseOfTheLabels) {
  const Tokenizer tokenizer = golden_tokenizer();
  for (const TaskKind kind : kAllTasks) {
    TaskExamples examples = random_examples(kind, 40);
    examples.may_lack_answer = true;  // a fourth of the questions have none
    for (const std::int64_t max_length : {24, 128}) {
      const TaskSequences sequences(examples, tokenizer, max_length, {});
      const TaskLogits logits =
          logits_by(sequences, [&](const batch::MicroBatch& batch, std::size_t row, std::size_t output) {
            const std::int32_t label = batch.objective(0).labels[row];
            if (kind == TaskKind::Regression) return std::bit_cast<float>(label);
            if (kind == TaskKind::MultipleChoice || kind == TaskKind::QuestionAnswering)
              return (label & describe::GroupLabel::answer(static_cast<int>(output))) != 0 ? 5.0F : -5.0F;
            return label == static_cast<std::int32_t>(output) ? 5.0F : -5.0F;
          });
      for (const TaskScore& score : score_predictions(predict(logits, {}), examples)) {
        EXPECT_DOUBLE_EQ(score.value, 1) << describe::name_of(kind) << score.name;
      }
    }
  }
}

TEST(Predictions, OfAnswersAreThoseOfHuggingFacesPostProcessing) {
  const Tokenizer tokenizer = golden_tokenizer();
  int num_answers = 0;
  const nlohmann::json cases = read_golden("task_cases.json").at("questions");
  for (const nlohmann::json& one : cases) {
    TaskExamples examples = examples_of(task_of(TaskKind::QuestionAnswering),
                                        {text_example(one.at("question"), one.at("context"))});
    examples.may_lack_answer = one.at("may_lack_answer");
    TaskOptions options;
    options.stride = one.at("stride").get<std::int64_t>();
    options.num_best_answers = one.at("best_answers");
    options.max_answer_length = one.at("max_answer_length");
    const TaskSequences sequences(examples, tokenizer, one.at("max_length"), options);
    const TaskLogits logits =
        logits_by(sequences, [&](const batch::MicroBatch& batch, std::size_t row, std::size_t output) {
          const auto place = static_cast<std::size_t>(batch.objective(0).rows[row]);
          const auto window = static_cast<std::size_t>(
              sequences.sequence(static_cast<std::uint64_t>(batch.row_samples[place])).window);
          return one.at("windows")[window]
                     .at(output == 0 ? "start" : "end")[static_cast<std::size_t>(batch.positions[place])]
                     .get<float>() /
                 4096;
        });
    const Prediction prediction = predict(logits, options).front();
    EXPECT_EQ(prediction.answer, one.at("prediction").get<std::string>()) << one;
    num_answers += prediction.answer.empty() ? 0 : 1;
  }
  EXPECT_GT(num_answers, 20);
}

TEST(Predictions, ArePrintedByTheNamesOfLabels) {
  const describe::Task classes = task_of(TaskKind::Classification);
  TaskExample example = text_example("x", "Zürich 1924");
  example.id = "q\"7";
  Prediction prediction;
  prediction.label = 1;
  prediction.probabilities = {0.25, 0.75};
  EXPECT_EQ(print_prediction(prediction, example, classes),
            R"({"id":"q\"7","label":"yes","probabilities":{"no":0.25,"yes":0.75}})");
  prediction.number = 2.5;
  EXPECT_EQ(print_prediction(prediction, example, task_of(TaskKind::Regression)),
            R"({"id":"q\"7","score":2.5})");
  EXPECT_EQ(print_prediction(prediction, example, task_of(TaskKind::MultipleChoice)),
            R"({"id":"q\"7","label":1,"probabilities":[0.25,0.75]})");
  example.words = {"Ann", "sings"};
  prediction.tags = {0, 2};
  EXPECT_EQ(print_prediction(prediction, example, task_of(TaskKind::TokenClassification)),
            R"({"id":"q\"7","tokens":["Ann","sings"],"tags":["B-X","O"]})");
  prediction.span = {.begin = 8, .text = "1924"};
  prediction.answer = "1924";
  prediction.score = 0.5;
  EXPECT_EQ(print_prediction(prediction, example, task_of(TaskKind::QuestionAnswering)),
            R"({"id":"q\"7","answer":"1924","answer_start":7,"probability":0.5})");
}

TEST(TaskScores, HaveTheNamesThatAreGivenBefore) {
  for (const TaskKind kind : kAllTasks) {
    const TaskExamples examples = random_examples(kind, 12);
    std::vector<Prediction> predictions(examples.examples.size());
    for (std::size_t i = 0; i < predictions.size(); ++i) predictions[i].tags = examples.examples[i].tags;
    std::vector<std::string> names;
    for (const TaskScore& score : score_predictions(predictions, examples)) names.push_back(score.name);
    EXPECT_EQ(names, score_names(examples.task));
  }
  describe::Task parts_of_speech = task_of(TaskKind::TokenClassification);
  parts_of_speech.labels = {"NN", "VB"};
  EXPECT_THAT(score_names(parts_of_speech), ElementsAre("accuracy"));
}

}  // namespace
}  // namespace plenum::data
