#include "plenum/data/corpus/dataset.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/io/checksum.h"

namespace plenum::data {
namespace {

std::string path_in(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}", directory, name);
}

DatasetDescription read_checked_description(const std::string& directory) {
  DatasetDescription description = read_dataset_description(directory);
  for (const io::FileRecord& file : description.files) {
    const std::string path = path_in(directory, file.name);
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    base::require(!error, "cannot open {}, which belongs to the dataset: {}", path, error.message());
    base::require(size == file.size_bytes, "{} has {} bytes where {} were written; prepare the dataset again",
                  path, size, file.size_bytes);
  }
  return description;
}

[[noreturn]] void fail_sequences(const std::string& directory, Split split, std::string_view what) {
  base::fail("{} is damaged: {}; prepare the dataset again",
             CorpusPaths(directory).sequences[index_of(split)], what);
}

void verify_checksum(const std::string& directory, const io::FileRecord& file) {
  base::require(io::file_checksum(path_in(directory, file.name)) == file.checksum,
                "{} is damaged: its checksum is not the one in {}; prepare the dataset again",
                path_in(directory, file.name), kDatasetFileName);
}

}  // namespace

Dataset::Dataset(const std::string& directory)
    : directory_(description_directory(directory)), description_(read_checked_description(directory_)) {
  for (const Split split : kSplits) ids_.emplace_back(histogram(split));
  shards_.resize(num_shards());
  holdout_ = open_part(directory_, description_, Split::Holdout);
  add_shard(directory_, description_);
  for (const std::string& other : shard_directories(directory)) {
    if (other != directory_) add_shard(other, read_checked_description(other));
  }
}

void Dataset::add_shard(const std::string& directory, const DatasetDescription& description) {
  const DatasetShard& shard = description.shard;
  base::require(description.fingerprint == description_.fingerprint && shard.count == num_shards(),
                "{} is a shard of another dataset than {}; move one of them away", directory, directory_);
  std::optional<Part>& place = shards_[shard.index];
  base::require(!place, "{} is shard {} of the dataset, and so is {}; move one of them away", directory,
                shard.index, place ? place->directory : "");
  place = open_part(directory, description, Split::Train);
}

Dataset::Part Dataset::open_part(const std::string& directory, const DatasetDescription& description,
                                 Split split) const {
  const CorpusPaths paths(directory);
  const std::size_t index = index_of(split);
  Part part{.directory = directory,
            .files = description.files,
            .tokens = IndexedTokens(paths.tokens[index], paths.index[index]),
            .sequences = SequenceIndex(paths.sequences[index])};
  base::require(part.sequences.num_tokens() == part.tokens.num_tokens(), "{} does not belong to {}",
                paths.sequences[index], paths.tokens[index]);
  const std::uint64_t stated =
      split == Split::Train ? description.shard.num_sequences(num_sequences(split)) : num_sequences(split);
  base::require(part.sequences.size() == stated,
                "{} has {} sequences where {} states {}; prepare the dataset again", paths.sequences[index],
                part.sequences.size(), path_in(directory, kDatasetFileName), stated);
  return part;
}

bool Dataset::is_whole() const {
  return std::ranges::all_of(shards_, [](const std::optional<Part>& part) { return part.has_value(); });
}

const Dataset::Part& Dataset::part_of(Split split, std::uint64_t id) const {
  base::check(id < num_sequences(split), "no such sequence: id={} of {}", id, num_sequences(split));
  if (split == Split::Holdout) return *holdout_;
  base::check(has(id), "a sequence must be here to be read: id={} shards={}", id, num_shards());
  return *shards_[id % num_shards()];
}

std::int64_t Dataset::length(Split split, std::uint64_t id) const {
  if (split == Split::Train && !has(id)) return ids_[index_of(split)].length_of(id);
  return static_cast<std::int64_t>(record(split, id).length());
}

SequenceRecord Dataset::record(Split split, std::uint64_t id) const {
  const Part& part = part_of(split, id);
  const SequenceRecord record = part.sequences[shard_of(split).place_of(id)];
  const std::uint64_t num_tokens = part.tokens.num_tokens();
  const auto inside = [&](std::uint64_t first, std::uint64_t length) {
    return first <= num_tokens && length <= num_tokens - first;
  };
  const bool valid = inside(record.first_a, record.length_a) && inside(record.first_b, record.length_b) &&
                     record.length() <= static_cast<std::uint64_t>(max_length());
  if (!valid) [[unlikely]]
    fail_sequences(part.directory, split, fmt::format("record {} is out of range", id));
  return record;
}

void Dataset::append_sequence(Split split, std::uint64_t id, std::vector<TokenId>& tokens,
                              std::vector<std::uint8_t>& segments) const {
  const SequenceRecord sequence = record(split, id);
  const IndexedTokens& source = part_of(split, id).tokens;
  tokens.push_back(description_.special.cls);
  source.append_tokens(sequence.first_a, sequence.length_a, tokens);
  tokens.push_back(description_.special.sep);
  segments.insert(segments.end(), sequence.length_a + std::size_t{2}, 0);
  if (!sequence.is_pair()) return;
  source.append_tokens(sequence.first_b, sequence.length_b, tokens);
  tokens.push_back(description_.special.sep);
  segments.insert(segments.end(), sequence.length_b + std::size_t{1}, 1);
}

std::uint64_t Dataset::num_bytes() const {
  std::uint64_t total = 0;
  for (const std::optional<Part>& part : shards_) {
    if (!part) continue;
    for (const io::FileRecord& file : part->files) total += file.size_bytes;
  }
  return total;
}

void Dataset::verify_file(std::string_view name) const {
  const auto file = std::ranges::find(description_.files, name, &io::FileRecord::name);
  base::require(file != description_.files.end(), "{} does not list {}; prepare the dataset again",
                path_in(directory_, kDatasetFileName), name);
  verify_checksum(directory_, *file);
}

void Dataset::verify_files(base::Progress& progress) const {
  progress.begin("verifying", "bytes", num_bytes());
  std::uint64_t done = 0;
  for (const std::optional<Part>& part : shards_) {
    if (!part) continue;
    for (const io::FileRecord& file : part->files) {
      verify_checksum(part->directory, file);
      progress.advance_to(done += file.size_bytes);
    }
  }
  progress.end();
}

void Dataset::verify_records(const Part& part, Split split, const DatasetShard& shard) const {
  part.sequences.verify();
  const packing::SequenceIds& ids = ids_[index_of(split)];
  std::int64_t expected = 0;
  for (std::uint64_t place = 0; place < part.sequences.size(); ++place) {
    const std::uint64_t id = shard.id_of(place);
    while (id >= ids.first(expected + 1)) ++expected;
    if (length(split, id) != expected)
      fail_sequences(part.directory, split, fmt::format("record {} has not the length of its number", place));
  }
}

void Dataset::verify(base::Progress& progress) const {
  verify_files(progress);
  for (std::uint64_t index = 0; index < num_shards(); ++index) {
    if (has_shard(index))
      verify_records(*shards_[index], Split::Train, {.index = index, .count = num_shards()});
  }
  verify_records(*holdout_, Split::Holdout, {});
}

}  // namespace plenum::data
