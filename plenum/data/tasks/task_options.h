#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/options.h"
#include "plenum/data/text/invalid_text.h"
#include "plenum/describe/task.h"

namespace plenum::data {

/// What files of a task look like. Auto goes by the name: .tsv, .csv, .jsonl, .json, .conll.
enum class TaskFormat : std::uint8_t { Auto, Tsv, Csv, JsonLines, Json, Conll };

/// What becomes of a text or a pair of texts with more tokens than a sequence may have.
enum class TooLong : std::uint8_t {
  Truncate,  ///< its end is left out, of a pair that of the longer text first
  Refuse,
};

/// Whether a question may have no answer in its context. Auto: if one of the file's has none.
enum class NoAnswer : std::uint8_t { Auto, Yes, No };

/// In place of a column: there is none.
inline constexpr const char* kNoColumn = "none";

/// How the data of a task is read, laid out and answered.
struct TaskOptions {
  TaskFormat format = TaskFormat::Auto;
  // Names of columns or fields, or numbers of columns, from 1, of files without a header. Empty: the first of
  // the usual names that there is. kNoColumn: none, though there may be one of such a name.
  std::string text_column;
  std::string pair_column;
  std::string label_column;
  std::string id_column;
  std::vector<std::string> choice_columns;  ///< one of a list, or one for each choice
  bool quoted_tsv = false;                  ///< fields of .tsv may stand in quotes, as those of .csv
  InvalidTextRule invalid = InvalidTextRule::Refuse;

  std::optional<std::int64_t> max_length;  ///< of a sequence
  std::optional<std::int64_t> stride;      ///< tokens of a text that stand in two windows that meet
  TooLong too_long = TooLong::Truncate;

  NoAnswer no_answer = NoAnswer::Auto;
  std::int64_t max_answer_length = 30;  ///< in tokens
  std::int64_t num_best_answers = 20;   ///< ends and beginnings that are tried with each other

  base::OptionTable table();
  /// Throws UserError for settings that contradict each other or do not go with the task.
  void check(describe::TaskKind kind) const;

  /// The tokens that sequences may have for a model with so many positions: 128, or 384 for question
  /// answering, as in BERT's fine-tuning, unless another number is given. Throws UserError if that is more
  /// than there are positions.
  std::int64_t max_length_for(describe::TaskKind kind, std::int64_t max_positions) const;
};

}  // namespace plenum::data
