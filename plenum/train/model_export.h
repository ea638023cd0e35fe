#pragma once

#include <cstdint>
#include <string>

#include "plenum/io/atomic_directory.h"
#include "plenum/train/model_source.h"

namespace plenum::train {

/// What an export wrote and how it was verified.
struct ExportReport {
  std::int64_t num_parameters = 0;
  std::uint64_t num_bytes = 0;
  std::int64_t logits_compared = 0;  ///< of the model before and what was read back, all equal
};

/// Writes a model as a Hugging Face directory. Before that gets its name, or the place of another, it is read
/// back and the logits of a few sequences are compared bit for bit. Throws UserError as
/// write_hugging_face_directory and load_model do, if the tokenizer is not the model's, and if the logits
/// differ.
ExportReport export_model(
    const ModelSource& source, const std::string& output, io::Replace replace, std::size_t num_threads,
    const Note& note = [](std::string_view) {});

}  // namespace plenum::train
