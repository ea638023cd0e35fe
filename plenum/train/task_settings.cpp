#include "plenum/train/task_settings.h"

#include "plenum/base/check.h"

namespace plenum::train {

using describe::TaskKind;

base::OptionTable TaskSettings::table() {
  base::OptionTable options("task");
  options.add_choice<std::optional<TaskKind>>(
      "task", kind,
      {{"classification", TaskKind::Classification},
       {"regression", TaskKind::Regression},
       {"token-classification", TaskKind::TokenClassification},
       {"question-answering", TaskKind::QuestionAnswering},
       {"multiple-choice", TaskKind::MultipleChoice}},
      "What the model is fine-tuned for: a class or a number for a text or a pair, a class for every word, "
      "the span that answers a question, or the text that goes with another");
  options.add("train", train, "FILE", "Labelled examples to train on: .tsv, .csv, .jsonl, .json or .conll");
  options.add("dev", dev, "FILE", "Labelled examples to evaluate on, by which the best checkpoint is chosen");
  options.add("test", test, "FILE", "Examples that the best checkpoint labels in the end");
  options.add("metric", metric, "NAME",
              "What is best on --dev: accuracy, f1, f1_macro, matthews, pearson, spearman, exact_match or "
              "loss, as the task has it; its usual one if not given");
  return options;
}

void TaskSettings::check() const {
  base::require(kind.has_value(),
                "no task is given; add --task classification, regression, token-classification, "
                "question-answering or multiple-choice");
  base::require(!train.empty(), "no examples to train on are given; add --train FILE");
  base::require(!dev.empty() || metric.empty(), "--metric {} is measured on --dev; add --dev FILE", metric);
  data.check(*kind);
}

}  // namespace plenum::train
