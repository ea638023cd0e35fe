#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plenum/data/corpus/corpus_writer.h"
#include "plenum/data/corpus/dataset_shard.h"
#include "plenum/data/corpus/sequence_index.h"
#include "plenum/data/text/source_files.h"
#include "plenum/io/file_record.h"

namespace plenum::data {

/// What dataset.json says. The same input and options give the same bytes: no times, no machine.
struct DatasetDescription {
  std::int64_t max_length = 0;
  Objective objective = Objective::MaskedLanguageModel;
  std::uint64_t seed = 0;
  CorpusCounts counts;
  std::array<SequenceIndexSummary, 2> sequences;
  std::uint64_t duplicate_documents = 0;
  std::uint64_t vocabulary_size = 0;
  SpecialTokens special;
  NormalizerRules rules;
  nlohmann::ordered_json options;  ///< as given, for the reader
  std::vector<SourceFile> sources;
  std::vector<io::FileRecord> files;
  std::string fingerprint;  ///< of options and input
  DatasetShard shard;       ///< that the files hold; all else is said of the whole dataset

  const SequenceIndexSummary& operator[](Split split) const { return sequences[index_of(split)]; }
  double unknown_rate() const;
  double duplicate_share() const;
  /// How much of the input was no text, what became of it and where the first was, for people.
  std::string invalid_text() const;
};

inline constexpr std::string_view kDatasetFileName = "dataset.json";

/// Every file of a dataset directory; the last is the description.
inline constexpr std::array<std::string_view, 10> kDatasetFileNames = {
    "train.bin",         "train.idx", "train.sequences", "holdout.bin",           "holdout.idx",
    "holdout.sequences", "vocab.txt", "tokenizer.json",  "tokenizer_config.json", kDatasetFileName};

/// Where the description of a dataset lies: in `directory`, or, if that holds shards, in the first of them.
std::string description_directory(const std::string& directory);

/// Whether a directory has a description that says it is a dataset, of whichever version, or shards that do.
bool is_dataset(const std::string& directory);

nlohmann::ordered_json to_json(const DatasetDescription& description);

/// An object as text with a line for each key, and for each element of a list of objects: readable, without a
/// line for each number of a histogram.
std::string print_by_key(const nlohmann::ordered_json& object);

/// Reads dataset.json in description_directory(directory). Throws UserError naming it when it is missing, of
/// another version, or not what to_json writes.
DatasetDescription read_dataset_description(const std::string& directory);

}  // namespace plenum::data
