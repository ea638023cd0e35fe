#include "plenum/data/batches/dataset_sequences.h"

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/data/tokenizer/tokenizer_files.h"
#include "plenum/io/file.h"

namespace plenum::data {

Vocabulary read_vocabulary(const Dataset& dataset) {
  // Another order of the same tokens would train without an error, but not to what was asked for.
  dataset.verify_file("vocab.txt");
  const std::string path = dataset.directory() + "/vocab.txt";
  Vocabulary vocabulary = parse_vocab_txt(io::read_file(path), path);
  const DatasetDescription& description = dataset.description();
  base::require(
      vocabulary.size() == description.vocabulary_size && vocabulary.special() == description.special,
      "{} is not the vocabulary that {} describes; prepare the dataset again", path, kDatasetFileName);
  return vocabulary;
}

DatasetSequences::DatasetSequences(const Dataset& dataset, Split split)
    : dataset_(dataset), split_(split), vocabulary_(read_vocabulary(dataset)) {}

bool DatasetSequences::has_next_sentence() const {
  return dataset_.description().objective == Objective::WithNextSentence;
}

void DatasetSequences::append(std::uint64_t id, std::vector<TokenId>& tokens,
                              std::vector<std::uint8_t>& segments) const {
  dataset_.append_sequence(split_, id, tokens, segments);
}

bool DatasetSequences::is_random_next(std::uint64_t id) const {
  return dataset_.record(split_, id).is_random_next();
}

std::string DatasetSequences::name() const {
  return fmt::format("{} ({})", dataset_.directory(), name_of(split_));
}

}  // namespace plenum::data
