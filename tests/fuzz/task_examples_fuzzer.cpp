#include "plenum/data/tasks/answer_words.h"
#include "plenum/data/tasks/task_sequences.h"

#include "tests/fuzz/fuzz.h"

namespace {

using plenum::data::TaskFormat;
using plenum::describe::TaskKind;

plenum::data::Tokenizer make_tokenizer() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (char c = 33; c < 127; ++c) {
    tokens.push_back(std::string(1, c));
    tokens.push_back("##" + std::string(1, c));
  }
  return {plenum::data::Vocabulary(std::move(tokens), "fuzz"), {}};
}

/// Sequences keep to what is said of them before they are read.
void check_sequences(const plenum::data::TaskExamples& examples, const plenum::data::TaskOptions& options) {
  static const plenum::data::Tokenizer tokenizer = make_tokenizer();
  constexpr std::int64_t kMaxLength = 24;
  const plenum::data::TaskSequences sequences(examples, tokenizer, kMaxLength, options);
  const plenum::data::TaskLabels& labels = *sequences.task_labels();
  for (std::uint64_t id = 0; id < sequences.num_sequences(); ++id) {
    std::vector<plenum::data::TokenId> tokens;
    std::vector<std::uint8_t> segments;
    sequences.append(id, tokens, segments);
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> values;
    labels.append_labels(id, positions, values);
    const auto length = static_cast<std::size_t>(sequences.length(id));
    if (tokens.size() != length || segments.size() != length) __builtin_trap();
    if (positions.size() != values.size() || std::ssize(values) != labels.num_labels(id)) __builtin_trap();
    if (labels.num_labels(id) > labels.most_labels(sequences.length(id))) __builtin_trap();
    for (const std::int32_t position : positions) {
      if (position < 0 || static_cast<std::size_t>(position) >= length) __builtin_trap();
    }
    for (const std::int32_t part : labels.sequence_lengths(id)) {
      if (part > kMaxLength) __builtin_trap();
    }
  }
}

}  // namespace

// The first byte chooses task, format, whether columns are numbered and whether labels are known; the rest is
// the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static constexpr TaskKind kKinds[] = {TaskKind::Classification, TaskKind::Regression,
                                        TaskKind::TokenClassification, TaskKind::QuestionAnswering,
                                        TaskKind::MultipleChoice};
  static constexpr TaskFormat kFormats[] = {TaskFormat::Tsv, TaskFormat::Csv, TaskFormat::JsonLines,
                                            TaskFormat::Json, TaskFormat::Conll};
  plenum::data::TaskOptions options;
  const TaskKind kind = kKinds[data[0] % 5];
  options.format = kFormats[data[0] / 5 % 5];
  if (data[0] / 25 % 2 == 1) {
    options.text_column = "1";
    options.label_column = "2";
  }
  const bool is_known = data[0] / 50 % 2 == 1;
  options.quoted_tsv = data[0] / 100 % 2 == 1;
  options.invalid = plenum::data::InvalidTextRule::Replace;  // no byte ends the search at once
  plenum::fuzz::parse_or_refuse([&] {
    const plenum::fuzz::InputFile file(plenum::fuzz::as_text(data + 1, size - 1));
    plenum::describe::Task task;
    task.kind = kind;
    if (kind == TaskKind::Classification || kind == TaskKind::TokenClassification) task.labels = {"0", "1"};
    const plenum::data::TaskExamples examples =
        is_known ? plenum::data::read_examples(file.path(), task, options, plenum::data::Labelled::Optional)
                 : plenum::data::read_training_examples(file.path(), kind, options);
    for (const plenum::data::TaskExample& example : examples.examples) {
      for (const plenum::data::AnswerSpan& answer : example.answers) {
        if (example.pair.compare(answer.begin, answer.text.size(), answer.text) != 0) __builtin_trap();
        static_cast<void>(plenum::data::answer_words(answer.text));
      }
    }
    check_sequences(examples, options);
  });
  return 0;
}
