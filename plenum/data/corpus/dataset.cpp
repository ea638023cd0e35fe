#include "plenum/data/corpus/dataset.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/io/checksum.h"

namespace plenum::data {
namespace {

DatasetDescription read_checked_description(const std::string& directory) {
  DatasetDescription description = read_dataset_description(directory);
  for (const io::FileRecord& file : description.files) {
    const std::string path = directory + "/" + file.name;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    base::require(!error, "cannot open {}, which belongs to the dataset: {}", path, error.message());
    base::require(size == file.size_bytes, "{} has {} bytes where {} were written; prepare the dataset again",
                  path, size, file.size_bytes);
  }
  return description;
}

}  // namespace

Dataset::Dataset(const std::string& directory)
    : directory_(directory),
      description_(read_checked_description(directory)),
      parts_{open_part(Split::Train), open_part(Split::Holdout)} {}

Dataset::Part Dataset::open_part(Split split) const {
  const CorpusPaths paths(directory_);
  const std::size_t index = index_of(split);
  Part part{.tokens = IndexedTokens(paths.tokens[index], paths.index[index]),
            .sequences = SequenceIndex(paths.sequences[index])};
  base::require(part.sequences.num_tokens() == part.tokens.num_tokens(), "{} does not belong to {}",
                paths.sequences[index], paths.tokens[index]);
  base::require(part.sequences.size() == histogram(split).num_sequences(),
                "{} has {} sequences where {} states {}; prepare the dataset again", paths.sequences[index],
                part.sequences.size(), path_of(kDatasetFileName), histogram(split).num_sequences());
  return part;
}

std::string Dataset::path_of(std::string_view name) const {
  return directory_ + "/" + std::string(name);
}

void Dataset::fail_sequences(Split split, std::string_view what) const {
  base::fail("{} is damaged: {}; prepare the dataset again",
             CorpusPaths(directory_).sequences[index_of(split)], what);
}

std::int64_t Dataset::length(Split split, std::uint64_t id) const {
  return static_cast<std::int64_t>(record(split, id).length());
}

SequenceRecord Dataset::record(Split split, std::uint64_t id) const {
  const Part& part = parts_[index_of(split)];
  base::check(id < part.sequences.size(), "no such sequence: id={} of {}", id, part.sequences.size());
  const SequenceRecord record = part.sequences[id];
  const std::uint64_t num_tokens = part.tokens.num_tokens();
  const auto inside = [&](std::uint64_t first, std::uint64_t length) {
    return first <= num_tokens && length <= num_tokens - first;
  };
  const bool valid = inside(record.first_a, record.length_a) && inside(record.first_b, record.length_b) &&
                     record.length() <= static_cast<std::uint64_t>(max_length());
  if (!valid) [[unlikely]]
    fail_sequences(split, fmt::format("record {} is out of range", id));
  return record;
}

void Dataset::append_sequence(Split split, std::uint64_t id, std::vector<TokenId>& tokens,
                              std::vector<std::uint8_t>& segments) const {
  const SequenceRecord sequence = record(split, id);
  const IndexedTokens& source = parts_[index_of(split)].tokens;
  tokens.push_back(description_.special.cls);
  source.append_tokens(sequence.first_a, sequence.length_a, tokens);
  tokens.push_back(description_.special.sep);
  segments.insert(segments.end(), sequence.length_a + std::size_t{2}, 0);
  if (!sequence.is_pair()) return;
  source.append_tokens(sequence.first_b, sequence.length_b, tokens);
  tokens.push_back(description_.special.sep);
  segments.insert(segments.end(), sequence.length_b + std::size_t{1}, 1);
}

void Dataset::verify_file(std::string_view name) const {
  const auto file = std::find_if(description_.files.begin(), description_.files.end(),
                                 [&](const io::FileRecord& other) { return other.name == name; });
  base::require(file != description_.files.end(), "{} does not list {}; prepare the dataset again",
                path_of(kDatasetFileName), name);
  base::require(io::file_checksum(path_of(name)) == file->checksum,
                "{} is damaged: its checksum is not the one in {}; prepare the dataset again", path_of(name),
                kDatasetFileName);
}

void Dataset::verify(base::Progress& progress) const {
  std::uint64_t total = 0;
  for (const io::FileRecord& file : description_.files) total += file.size_bytes;
  progress.begin("verifying", "bytes", total);
  std::uint64_t done = 0;
  for (const io::FileRecord& file : description_.files) {
    verify_file(file.name);
    progress.advance_to(done += file.size_bytes);
  }
  for (const Split split : kSplits) {
    parts_[index_of(split)].sequences.verify();
    std::vector<std::uint64_t> counts(histogram(split).counts.size());
    std::uint64_t previous = 0;
    for (std::uint64_t id = 0; id < num_sequences(split); ++id) {
      const std::uint64_t length = record(split, id).length();
      if (length < previous || length >= counts.size())
        fail_sequences(split, fmt::format("record {} is out of order", id));
      ++counts[length];
      previous = length;
    }
    if (counts != histogram(split).counts) fail_sequences(split, "its lengths are not those in dataset.json");
  }
  progress.end();
}

}  // namespace plenum::data
