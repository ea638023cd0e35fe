#include "plenum/data/sequence_index.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/data/ordered_pipeline.h"
#include "plenum/io/append_file.h"
#include "plenum/io/checksum.h"
#include "plenum/io/scatter_file.h"

namespace plenum::data {
namespace {

/// The beginning of a .sequences file.
struct Header {
  char magic[8] = {'P', 'L', 'N', 'M', 'S', 'E', 'Q', '\0'};
  std::uint32_t version = 1;
  std::uint32_t record_bytes = sizeof(SequenceRecord);
  std::uint64_t num_sequences = 0;
  std::uint64_t num_tokens = 0;  ///< in the token file that the records point into
  std::uint64_t max_length = 0;
  std::uint64_t checksum = 0;  ///< XXH3 of the records
};
static_assert(sizeof(Header) == 48);

template <typename Value>
std::string_view bytes_of_value(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string_view record_bytes(const io::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()) + sizeof(Header),
          file.bytes().size() - sizeof(Header)};
}

constexpr std::uint64_t kTokensPerItem = std::uint64_t{1} << 20;

/// Consecutive documents to build at one go.
struct DocumentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct BuiltRange {
  DocumentRange documents;
  std::vector<SequenceRecord> records;
  LostTokens lost;
  bool deferred = false;  ///< one document so long that its records go to the file directly
};

/// Hands out ranges of about kTokensPerItem tokens.
class DocumentRanges {
 public:
  explicit DocumentRanges(const IndexedTokens& tokens) : tokens_(tokens) {}

  bool next(DocumentRange& range) {
    if (next_ == tokens_.num_documents()) return false;
    range.begin = next_;
    const std::uint64_t first = first_token_of(next_);
    do {
      ++next_;
    } while (next_ < tokens_.num_documents() && first_token_of(next_) - first < kTokensPerItem);
    range.end = next_;
    return true;
  }

  /// The number of tokens before document `document`.
  std::uint64_t first_token_of(std::uint64_t document) const {
    const std::uint64_t sentence = tokens_.first_sentence(document);
    return sentence == tokens_.num_sentences() ? tokens_.num_tokens() : tokens_.first_token(sentence);
  }

 private:
  const IndexedTokens& tokens_;
  std::uint64_t next_ = 0;
};

BuiltRange build_range(const SequenceBuilder& builder, const DocumentRanges& ranges,
                       DocumentRange documents) {
  constexpr std::uint64_t kLongDocument = 64 * kTokensPerItem;
  BuiltRange built{.documents = documents, .records = {}, .lost = {}};
  const std::uint64_t num_tokens =
      ranges.first_token_of(documents.end) - ranges.first_token_of(documents.begin);
  built.deferred = documents.end - documents.begin == 1 && num_tokens > kLongDocument;
  if (built.deferred) return built;
  const SequenceBuilder::Sink sink = [&](const SequenceRecord& record) { built.records.push_back(record); };
  for (std::uint64_t document = documents.begin; document < documents.end; ++document) {
    builder.build(document, sink, built.lost);
  }
  return built;
}

/// Writes the records in order of the text to `path` and counts their lengths.
SequenceIndexSummary write_unsorted(const IndexedTokens& tokens, const SequenceOptions& options, Split split,
                                    std::size_t num_threads, const std::string& path,
                                    base::Progress& progress) {
  const SequenceBuilder builder(tokens, options, split);
  SequenceIndexSummary summary;
  summary.histogram.counts.resize(static_cast<std::size_t>(options.max_length) + 1);
  io::AppendFile unsorted(path);
  const SequenceBuilder::Sink write = [&](const SequenceRecord& record) {
    unsorted.append(bytes_of_value(record));
    ++summary.histogram.counts[record.length()];
    summary.random_next += record.is_random_next() ? 1 : 0;
  };
  DocumentRanges ranges(tokens);
  OrderedPipeline<DocumentRange, BuiltRange> pipeline(num_threads);
  pipeline.run([&](DocumentRange& range) { return ranges.next(range); },
               [&] { return [&](DocumentRange range) { return build_range(builder, ranges, range); }; },
               [&](BuiltRange&& built) {
                 if (built.deferred) builder.build(built.documents.begin, write, built.lost);
                 for (const SequenceRecord& record : built.records) write(record);
                 summary.lost.behind_first_sequence += built.lost.behind_first_sequence;
                 summary.lost.pair_truncation += built.lost.pair_truncation;
                 progress.advance_to(ranges.first_token_of(built.documents.end));
               });
  unsorted.flush();
  return summary;
}

}  // namespace

SequenceIndexSummary write_sequence_index(const IndexedTokens& tokens, const SequenceOptions& options,
                                          Split split, std::size_t num_threads, const std::string& path,
                                          base::Progress& progress) {
  const std::string unsorted_path = path + ".unsorted";
  const SequenceIndexSummary summary =
      write_unsorted(tokens, options, split, num_threads, unsorted_path, progress);

  Header header;
  header.num_sequences = summary.histogram.num_sequences();
  header.num_tokens = tokens.num_tokens();
  header.max_length = static_cast<std::uint64_t>(options.max_length);
  io::ScatterFile sorted(path, bytes_of_value(header), sizeof(SequenceRecord), summary.histogram.counts);
  {
    const io::MappedFile unsorted(unsorted_path);
    const std::span<const std::byte> bytes = unsorted.bytes();
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(SequenceRecord)) {
      SequenceRecord record;
      std::memcpy(&record, bytes.data() + at, sizeof record);
      sorted.append(record.length(), bytes_of_value(record));
    }
  }
  sorted.flush();
  header.checksum = io::checksum(record_bytes(io::MappedFile(path)));
  sorted.finish(bytes_of_value(header));
  std::filesystem::remove(unsorted_path);
  return summary;
}

SequenceIndex::SequenceIndex(const std::string& path) : path_(path), file_(path) {
  Header header;
  const Header expected;
  const std::size_t size = file_.bytes().size();
  base::require(size >= sizeof header, "{} is too short for an index of sequences; prepare the dataset again",
                path);
  std::memcpy(&header, file_.bytes().data(), sizeof header);
  base::require(std::memcmp(header.magic, expected.magic, sizeof header.magic) == 0,
                "{} is not an index of sequences; prepare the dataset again", path);
  base::require(header.version == expected.version && header.record_bytes == expected.record_bytes,
                "{} has format version {}, but this program reads version {}; prepare the dataset again",
                path, header.version, expected.version);
  base::require((size - sizeof header) % sizeof(SequenceRecord) == 0 &&
                    (size - sizeof header) / sizeof(SequenceRecord) == header.num_sequences,
                "{} does not have the size that its header states; prepare the dataset again", path);
  num_sequences_ = header.num_sequences;
  num_tokens_ = header.num_tokens;
}

SequenceRecord SequenceIndex::operator[](std::uint64_t id) const {
  SequenceRecord record;
  std::memcpy(&record, file_.bytes().data() + sizeof(Header) + id * sizeof record, sizeof record);
  return record;
}

void SequenceIndex::verify() const {
  Header header;
  std::memcpy(&header, file_.bytes().data(), sizeof header);
  base::require(io::checksum(record_bytes(file_)) == header.checksum,
                "{} is damaged: its records do not match the checksum; prepare the dataset again", path_);
}

}  // namespace plenum::data
