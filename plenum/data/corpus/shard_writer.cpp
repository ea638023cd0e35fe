#include "plenum/data/corpus/shard_writer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>

#include "plenum/base/check.h"
#include "plenum/base/parallel_for.h"
#include "plenum/data/corpus/indexed_tokens.h"
#include "plenum/data/corpus/sequence_index.h"
#include "plenum/io/append_file.h"
#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::data {
namespace {

namespace fs = std::filesystem;

/// What every shard has, as it is.
constexpr std::array<std::string_view, 6> kSharedFiles = {"holdout.bin",       "holdout.idx",
                                                          "holdout.sequences", "vocab.txt",
                                                          "tokenizer.json",    "tokenizer_config.json"};

/// Gives a file a second name, or copies it where the file system knows no such thing.
void link_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error) fs::copy_file(from, to, error);
  base::require(!error, "cannot write {}: {}", to, error.message());
}

/// The training sequences of one shard on their way into its files.
class ShardFiles {
 public:
  ShardFiles(const std::string& directory, TokenWidth width, std::int64_t max_length)
      : paths_(directory),
        width_(width),
        tokens_(paths_.tokens[kTrain]),
        lengths_(paths_.index[kTrain]),
        documents_(paths_.documents[kTrain]),
        sequences_(paths_.sequences[kTrain], max_length) {
    lengths_.append(std::string(kTokenIndexHeaderBytes, '\0'));
  }

  /// A sequence is a document here, and each of its segments a sentence.
  void add(const IndexedTokens& from, const SequenceRecord& record) {
    SequenceRecord moved = record;
    moved.first_a = add_sentence(from, record.first_a, record.length_a);
    moved.first_b = record.is_pair() ? add_sentence(from, record.first_b, record.length_b) : record.first_b;
    documents_.append_value(num_sentences_);
    sequences_.add(moved);
  }

  void finish() {
    for (io::AppendFile* file : {&tokens_, &lengths_, &documents_}) file->flush();
    tokens_.sync();
    complete_token_index(paths_.index[kTrain], paths_.documents[kTrain], width_);
    sequences_.finish(num_tokens_);
    std::error_code ignored;
    fs::remove(paths_.documents[kTrain], ignored);
  }

 private:
  static constexpr std::size_t kTrain = index_of(Split::Train);

  std::uint64_t add_sentence(const IndexedTokens& from, std::uint64_t first, std::uint32_t length) {
    tokens_.append(from.bytes(first, length));
    lengths_.append_value(length);
    ++num_sentences_;
    const std::uint64_t place = num_tokens_;
    num_tokens_ += length;
    return place;
  }

  CorpusPaths paths_;
  TokenWidth width_;
  io::AppendFile tokens_;
  io::AppendFile lengths_;
  io::AppendFile documents_;
  SequenceIndexWriter sequences_;
  std::uint64_t num_tokens_ = 0;
  std::uint64_t num_sentences_ = 0;
};

io::FileRecord describe_file(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  return {.name = name, .size_bytes = fs::file_size(path), .checksum = io::file_checksum(path)};
}

void write_description(const std::string& directory, DatasetDescription description,
                       const DatasetShard& shard) {
  description.shard = shard;
  for (io::FileRecord& file : description.files) file = describe_file(directory, file.name);
  io::write_file(directory + "/" + std::string(kDatasetFileName), print_by_key(to_json(description)));
}

}  // namespace

void write_shards(const std::string& directory, const DatasetDescription& description, std::uint64_t count,
                  std::size_t num_threads, base::Progress& progress) {
  const CorpusPaths paths(directory);
  const IndexedTokens tokens(paths.tokens[index_of(Split::Train)], paths.index[index_of(Split::Train)]);
  const SequenceIndex sequences(paths.sequences[index_of(Split::Train)]);
  base::require(sequences.size() >= count,
                "{} sequences cannot be divided into {} shards; give fewer --shards", sequences.size(),
                count);
  progress.begin("writing shards", "sequences", sequences.size());
  std::mutex mutex;
  std::uint64_t num_done = 0;
  base::parallel_for(count, num_threads, [&](std::size_t index) {
    const DatasetShard shard{.index = index, .count = count};
    const std::string own = directory + "/" + shard_name(index);
    fs::remove_all(own);
    io::make_directories(own);
    for (const std::string_view name : kSharedFiles)
      link_file(directory + "/" + std::string(name), own + "/" + std::string(name));
    ShardFiles files(own, tokens.width(), description.max_length);
    const std::uint64_t num_own = shard.num_sequences(sequences.size());
    for (std::uint64_t place = 0; place < num_own; ++place) files.add(tokens, sequences[shard.id_of(place)]);
    files.finish();
    write_description(own, description, shard);
    io::sync_directory(own);
    const std::lock_guard lock(mutex);
    progress.advance_to(num_done += num_own);
  });
  progress.end();
}

}  // namespace plenum::data
