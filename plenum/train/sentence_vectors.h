#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plenum/base/options.h"
#include "plenum/base/progress.h"
#include "plenum/data/text/invalid_text.h"
#include "plenum/tensor/device.h"
#include "plenum/train/model_source.h"

namespace plenum::train {

/// What of a text's last layer becomes its vector, with [CLS] and [SEP] among its tokens.
enum class Pooling : std::uint8_t {
  Mean,  ///< the mean over its tokens
  Cls    ///< the row of [CLS]
};

/// What becomes a vector, and how.
struct VectorOptions {
  std::string input;   ///< a text per line (.txt), or per record of .jsonl, .csv or .tsv; perhaps compressed
  std::string output;  ///< a NumPy file, Float32 [texts, width]
  std::string text_field = "text";
  data::InvalidTextRule invalid = data::InvalidTextRule::Refuse;
  Pooling pooling = Pooling::Mean;
  bool has_unit_length = false;
  std::optional<std::int64_t> max_length;          ///< tokens of a text; what the model takes if absent
  std::optional<std::int64_t> micro_batch_tokens;  ///< what suits the device if absent

  void add_to(base::OptionTable& table);
};

struct VectorReport {
  std::uint64_t num_texts = 0;
  std::uint64_t num_tokens = 0;     ///< that the model read, [CLS] and [SEP] among them
  std::uint64_t num_truncated = 0;  ///< texts whose end was cut off, as they were longer than max_length
  std::uint64_t num_empty = 0;      ///< texts without a token but [CLS] and [SEP]
  std::uint64_t num_replaced = 0;   ///< places that were not UTF-8
  std::int64_t max_length = 0;
  std::int64_t width = 0;
  double seconds = 0;
};

/// Writes the vector of every text, in the order of the input. The file appears whole or not at all. Texts
/// are read and cut into tokens on threads of their own, some thousands ahead; of these the model takes long
/// ones first, laid end to end into full micro-batches. Throws UserError as load_model does, and for input
/// that cannot be read, with its place.
VectorReport write_sentence_vectors(const ModelSource& source, const VectorOptions& options,
                                    std::size_t num_threads, tensor::Device device, base::Progress& progress);

}  // namespace plenum::train
