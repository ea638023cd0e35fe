#include "plenum/model/check_micro_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plenum/base/check.h"
#include "plenum/batch/group_label.h"
#include "plenum/batch/micro_batch.h"

namespace plenum::model {
namespace {

void check_below(std::string_view what, std::span<const std::int32_t> values, std::int64_t bound) {
  // What is negative is greater than any bound then: one comparison each, which compilers do several at once.
  std::uint32_t greatest = 0;
  for (const std::int32_t value : values) greatest = std::max(greatest, static_cast<std::uint32_t>(value));
  base::check(values.empty() || greatest < bound, "{} must be below {}: {}", what, bound,
              static_cast<std::int32_t>(greatest));
}

void check_length(std::string_view what, const auto& values, std::int64_t length) {
  base::check(static_cast<std::int64_t>(values.size()) == length, "there must be {} {}: {}", length, what,
              values.size());
}

void check_groups(std::string_view what, const batch::GroupedRows& grouped, std::int64_t num_entries,
                  std::int64_t num_rows) {
  check_below(what, grouped.entries, num_entries);
  check_below(what, grouped.starts, static_cast<std::int64_t>(grouped.rows.size()) + 1);
  check_below(what, grouped.rows, num_rows);
}

void check_finite(std::string_view what, std::span<const std::int32_t> bits) {
  for (const std::int32_t label : bits) {
    base::check(std::isfinite(std::bit_cast<float>(label)), "{} must be finite numbers: {}", what,
                std::bit_cast<float>(label));
  }
}

/// Losses are normalised by what num_losses says, and so are groups of the sequences that are said.
void check_answers(std::string_view what, const describe::Objective& objective,
                   std::span<const std::int32_t> labels, std::int64_t num_sequences) {
  if (labels.empty()) return;
  batch::check_group_labels(labels, static_cast<int>(objective.num_classes));
  base::check(std::ranges::find(labels, -1) == labels.end(), "{} must all be of groups", what);
  if (objective.group_sequences == 0) return;
  const std::int64_t num_groups = batch::count_groups(labels);
  base::check(num_groups * objective.group_sequences == num_sequences,
              "{} sequences must be {} groups of {}: {} groups", num_sequences,
              num_sequences / objective.group_sequences, objective.group_sequences, num_groups);
}

void check_labels(std::string_view what, const describe::Objective& objective,
                  std::span<const std::int32_t> labels, std::int64_t num_sequences) {
  switch (objective.loss) {
    case describe::LossKind::WordCrossEntropy:
    case describe::LossKind::ClassCrossEntropy:
      return check_below(what, labels, objective.num_classes);
    case describe::LossKind::SquaredError:
      return check_finite(what, labels);
    case describe::LossKind::GroupCrossEntropy:
      return check_answers(what, objective, labels, num_sequences);
  }
}

void check_rows(const std::string& labelled, const batch::ObjectiveRows& read, std::int64_t num_rows) {
  const std::string rows = "rows of " + labelled;
  check_length("labels of " + labelled, read.labels, static_cast<std::int64_t>(read.rows.size()));
  check_below(rows, read.rows, num_rows);
  base::check(std::ranges::adjacent_find(read.rows, std::ranges::greater_equal()) == read.rows.end(),
              "{} must increase", rows);
}

void check_objective(const describe::Objective& objective, const batch::ObjectiveRows& read,
                     std::int64_t num_sequences, std::int64_t num_rows) {
  check_rows(objective.labelled, read, num_rows);
  check_labels("labels of " + objective.labelled, objective, read.labels, num_sequences);
}

/// Entries that a table has; without it nothing is looked up, and any index will do.
std::int64_t rows_of(const std::optional<describe::Table>& table) {
  return table ? table->num_rows : std::numeric_limits<std::int32_t>::max();
}

}  // namespace

void check_micro_batch(const batch::MicroBatch& micro_batch, const describe::ModelDescription& model) {
  const std::int64_t num_rows = micro_batch.num_rows;
  const std::int64_t vocabulary = model.vocabulary();
  const std::int64_t num_positions = rows_of(model.embedding.positions);
  const std::int64_t num_segments = rows_of(model.embedding.segments);
  check_length("tokens", micro_batch.ids, num_rows);
  check_length("segments", micro_batch.segments, num_rows);
  check_length("positions", micro_batch.positions, num_rows);
  check_length("samples of rows", micro_batch.row_samples, num_rows);
  const auto num_sequences = static_cast<std::int64_t>(micro_batch.starts.size());
  check_length("samples of sequences", micro_batch.samples, num_sequences);
  check_below("tokens", micro_batch.ids, vocabulary);
  check_below("segments", micro_batch.segments, num_segments);
  check_below("positions", micro_batch.positions, num_positions);
  for (std::size_t i = 0; i < model.heads.size(); ++i) {
    check_objective(model.heads[i].objective, micro_batch.objective(i), num_sequences, num_rows);
  }
  // What is read without a head is labelled by its sequence.
  if (model.heads.empty()) {
    check_rows("vectors", micro_batch.objective(0), num_rows);
    check_below("labels of vectors", micro_batch.objective(0).labels, num_sequences);
  }
  check_groups("rows by token", micro_batch.by_word, vocabulary, num_rows);
  check_groups("rows by position", micro_batch.by_position, num_positions, num_rows);
  check_groups("rows by segment", micro_batch.by_segment, num_segments, num_rows);
  batch::check_sequence_offsets(micro_batch.sequences());
}

}  // namespace plenum::model
