#include "plenum/train/model_export.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/batch/capacity.h"
#include "plenum/batch/group_label.h"
#include "plenum/batch/micro_batch.h"
#include "plenum/describe/bert.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_weights.h"

namespace plenum::train {
namespace {

constexpr std::int64_t kLengths = 4;
constexpr std::int64_t kLongest = 64;

/// Whether the objective is asked for the row of a position; of those that data chooses every fourth is.
bool is_asked(const describe::Objective& objective, std::int64_t position) {
  if (objective.rows == describe::RowsRead::FirstOfSequence) return position == 0;
  return objective.rows == describe::RowsRead::All || position % 4 == 0;
}

/// Any label that is allowed: of groups, whose first row is `is_first`, that row is all answers.
std::int32_t any_label(const describe::Objective& objective, bool is_first) {
  if (objective.loss != describe::LossKind::GroupCrossEntropy || !is_first) return 0;
  std::int32_t label = batch::GroupLabel::kFirst;
  for (int column = 0; column < objective.num_classes; ++column) label |= batch::GroupLabel::answer(column);
  return label;
}

/// Sequences of scattered tokens, four lengths in turn, each twice the one before, of which the objective is
/// asked for some rows.
batch::MicroBatch probe(const describe::ModelConfig& config, const describe::Objective& objective) {
  batch::MicroBatch batch;
  batch.objectives.resize(1);
  const std::int64_t group = std::max<std::int64_t>(objective.group_sequences, 1);
  const std::int64_t num_sequences = (kLengths + group - 1) / group * group;
  for (std::int64_t s = 0; s < num_sequences; ++s) {
    const std::int64_t length = std::min(kLongest >> (kLengths - 1 - s % kLengths), config.max_positions);
    batch.starts.push_back(static_cast<std::int32_t>(batch.num_rows));
    batch.lengths.push_back(static_cast<std::int32_t>(length));
    batch.samples.push_back(s);
    for (std::int64_t position = 0; position < length; ++position, ++batch.num_rows) {
      constexpr std::int64_t kPrime = 7919;
      batch.ids.push_back(static_cast<std::int32_t>((batch.num_rows + 1) * kPrime % config.vocabulary));
      batch.segments.push_back(2 * position < length || config.num_segments < 2 ? 0 : 1);
      batch.positions.push_back(static_cast<std::int32_t>(position));
      batch.row_samples.push_back(s);
      if (!is_asked(objective, position)) continue;
      batch.objectives.front().rows.push_back(static_cast<std::int32_t>(batch.num_rows));
      batch.objectives.front().labels.push_back(any_label(objective, position == 0 && s % group == 0));
    }
  }
  return batch;
}

std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) bytes += entry.file_size();
  return bytes;
}

}  // namespace

ExportReport export_model(const ModelSource& source, const std::string& output, io::Replace replace,
                          std::size_t num_threads, const Note& note) {
  load_tokenizer(source);  // throws if it is not the model's
  const batch::MicroBatch sequences =
      probe(source.config, describe::describe_bert(source.config).heads.front().objective);
  const batch::Capacity capacity{.rows = sequences.num_rows,
                                 .sequences = std::ssize(sequences.starts),
                                 .labels = sequences.work().labels,
                                 .max_length = kLongest};
  const std::unique_ptr<model::BertInference> before =
      load_model(source, capacity, num_threads, tensor::Device::Cpu, note);
  const tensor::ConstTensorView weights_N = before->weights();
  const std::vector<float> logits = before->logits(sequences);
  const auto check = [&](const std::string& written) {
    const ModelSource copy{
        .directory = written, .tokenizer = written, .config = model::read_hugging_face_config(written)};
    base::require(copy.config == source.config, "{} would not describe the model it is made of", output);
    const std::unique_ptr<model::BertInference> after = load_model(copy, capacity, num_threads);
    const std::vector<float> found = after->logits(sequences);
    base::require(logits.size() == found.size() &&
                      std::memcmp(logits.data(), found.data(), logits.size() * sizeof(float)) == 0,
                  "{} would not give the logits of the model it is made of; export it again", output);
  };
  model::write_hugging_face_directory(output,
                                      {.config = source.config,
                                       .table = before->parameters(),
                                       .weights_N = weights_N.span<float>(),
                                       .tokenizer_directory = source.tokenizer},
                                      replace, check);
  return {.num_parameters = before->parameters().num_parameters(),
          .num_bytes = bytes_in(output),
          .logits_compared = static_cast<std::int64_t>(logits.size())};
}

}  // namespace plenum::train
