#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plenum/describe/model_config.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/atomic_directory.h"

namespace plenum::model {

/// Where a file and a model differ, by the names of Plenum's table and of the file.
struct ImportReport {
  std::vector<std::string> new_tensors;     ///< of heads that the file lacks: not written, to be initialised
  std::vector<std::string> unused_tensors;  ///< of heads that the model does without
  /// Of a task, where a head of the file was passed over that would fit: why, in a few words.
  std::string other_head = {};
};

/// Overwrites the parameters in a flat buffer with those of a Hugging Face directory: model.safetensors, or
/// the shards that model.safetensors.index.json names. Names may lack `bert.`, as those of BertModel do, and
/// layer norms may have `gamma` and `beta`. Copies of tied tensors must be equal; buffers of positions are
/// passed over. Throws UserError for a missing tensor that is not of a head, one that the model has no place
/// for (but for heads that it does without), another shape, another vocabulary or an element that is not
/// finite, naming it.
ImportReport read_hugging_face_weights(const std::string& directory, const describe::ParameterTable& table,
                                       std::span<float> weights_N);

/// The same of a model that is to be trained for a task, which need not be that of the directory: of its head
/// the output map counts as missing unless the directory's config.json has the same task with the same labels
/// in the same order.
ImportReport read_weights_for_task(const std::string& directory, const describe::Task& task,
                                   const describe::ParameterTable& table, std::span<float> weights_N);

/// What a Hugging Face directory is made of.
struct HuggingFaceModel {
  const describe::ModelConfig& config;
  const describe::ParameterTable& table;
  std::span<const float> weights_N;
  std::string
      tokenizer_directory;  ///< vocab.txt, tokenizer.json and tokenizer_config.json are copied from it
};

/// Looks at a directory that was written but has not got its name yet. Throws to keep it from getting it.
using WrittenCheck = std::function<void(const std::string& written)>;

/// Writes a directory that transformers loads: whole or not at all, and only if `check` finds nothing wrong.
/// Throws UserError if it is there already, unless it is to be replaced and holds nothing but the files of
/// such a directory, and if there is no tokenizer.
void write_hugging_face_directory(const std::string& directory, const HuggingFaceModel& model,
                                  io::Replace replace = io::Replace::No, const WrittenCheck& check = {});

}  // namespace plenum::model
