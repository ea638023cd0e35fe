#include "plenum/train/prepared_data.h"

#include <cstdint>

#include <fmt/format.h>

#include "plenum/base/progress.h"
#include "plenum/base/units.h"
#include "plenum/data/corpus/objective.h"
#include "plenum/io/file.h"
#include "plenum/train/model_source.h"

namespace plenum::train {

using data::Split;

PreparedData::PreparedData(const std::string& directory)
    : dataset_(directory), training_(dataset_, Split::Train) {
  if (dataset_.num_sequences(Split::Holdout) > 0) held_out_.emplace(dataset_, Split::Holdout);
}

std::vector<bool> PreparedData::shards_here() const {
  std::vector<bool> here;
  for (std::uint64_t shard = 0; shard < dataset_.num_shards(); ++shard)
    here.push_back(dataset_.has_shard(shard));
  return here;
}

void PreparedData::require_unchanged(const Note& note) const {
  constexpr std::uint64_t kMostVerifiedBytes = std::uint64_t{1} << 30;
  const std::uint64_t bytes = dataset_.num_bytes();
  if (bytes > kMostVerifiedBytes) {
    note(fmt::format("{} of data are not compared with their checksums; plenum inspect {} --verify does",
                     base::format_bytes(bytes), dataset_.directory()));
    return;
  }
  base::SilentProgress silent;
  dataset_.verify_files(silent);
}

describe::ModelConfig PreparedData::fitted(describe::ModelConfig model, const std::string& init) const {
  if (init.empty()) {
    model.vocabulary = static_cast<std::int64_t>(dataset_.description().vocabulary_size);
    model.pad_id = dataset_.description().special.pad;
  } else {
    require_same_tokens(dataset_, tokenizer_beside(init), model);
  }
  model.has_next_sentence = dataset_.description().objective == data::Objective::WithNextSentence;
  return model;
}

std::vector<std::pair<std::string, std::string>> PreparedData::tokenizer_files() const {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json"})
    files.emplace_back(name, io::read_file(fmt::format("{}/{}", dataset_.directory(), name)));
  return files;
}

}  // namespace plenum::train
