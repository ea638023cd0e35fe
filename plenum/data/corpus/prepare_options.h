#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plenum/base/options.h"
#include "plenum/data/corpus/sequence_builder.h"
#include "plenum/data/text/text_reader.h"
#include "plenum/data/tokenizer/normalizer.h"
#include "plenum/io/atomic_directory.h"

namespace plenum::data {

enum class StripAccents { Auto, Yes, No };

/// Everything that decides what `prepare` makes.
struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string vocab_path;  ///< exactly one of these three is given
  std::string tokenizer_path;
  std::optional<std::int64_t> train_vocab_size;
  bool cased = false;
  StripAccents strip_accents = StripAccents::Auto;
  TextOptions text{.documents = DocumentRule::Auto};
  SequenceOptions sequences;
  std::int64_t seed = 0;
  double holdout = 0;
  std::int64_t shards = 1;  ///< directories that the dataset is divided into; 1: it is one directory
  std::optional<std::int64_t> threads;  ///< all cores if absent
  bool overwrite = false;
  std::int64_t checkpoint_blocks = 64;  ///< how many blocks a crash can cost

  base::OptionTable table();

  /// Throws UserError for settings that contradict each other.
  void check() const;
  NormalizerRules normalizer_rules() const;
  io::Replace replace() const { return overwrite ? io::Replace::Yes : io::Replace::No; }
  std::size_t num_threads() const;
};

}  // namespace plenum::data
