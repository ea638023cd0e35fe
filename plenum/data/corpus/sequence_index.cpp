#include "plenum/data/corpus/sequence_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/data/corpus/ordered_pipeline.h"
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

/// The sequences of a range in numbers.
struct CountedRange {
  DocumentRange documents;
  std::vector<std::uint64_t> counts;  ///< by length
  LostTokens lost;
  std::uint64_t random_next = 0;
};

/// The sequences of a range, in order of length, those of one length in order of the text.
struct SortedRange {
  struct Run {
    std::uint64_t length;
    std::uint64_t num_records;
  };
  DocumentRange documents;
  std::vector<SequenceRecord> records;
  std::vector<Run> runs;
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
    const auto first_behind = [&](std::uint64_t low, std::uint64_t high) {
      while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (first_token_of(middle) - first < kTokensPerItem) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    next_ = first_behind(next_ + 1, tokens_.num_documents());
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

/// Overwrites `counted`.
void count_range(const SequenceBuilder& builder, std::size_t num_lengths, DocumentRange documents,
                 CountedRange& counted) {
  counted.documents = documents;
  counted.counts.assign(num_lengths, 0);
  counted.lost = {};
  counted.random_next = 0;
  const SequenceBuilder::Sink count = [&](const SequenceRecord& record) {
    ++counted.counts[record.length()];
    counted.random_next += record.is_random_next() ? 1 : 0;
  };
  for (std::uint64_t document = documents.begin; document < documents.end; ++document) {
    builder.build(document, count, counted.lost);
  }
}

/// Builds the sequences of ranges and sorts them by length. One per thread.
class RangeSorter {
 public:
  RangeSorter(const SequenceBuilder& builder, const DocumentRanges& ranges, std::size_t num_lengths)
      : builder_(builder), ranges_(ranges), places_(num_lengths) {}

  /// Overwrites `sorted`.
  void sort(DocumentRange documents, SortedRange& sorted) {
    constexpr std::uint64_t kLongDocument = 64 * kTokensPerItem;
    const std::uint64_t num_tokens =
        ranges_.first_token_of(documents.end) - ranges_.first_token_of(documents.begin);
    sorted.documents = documents;
    sorted.deferred = documents.end - documents.begin == 1 && num_tokens > kLongDocument;
    sorted.records.clear();
    sorted.runs.clear();
    if (sorted.deferred) return;
    unsorted_.clear();
    std::fill(places_.begin(), places_.end(), 0);
    LostTokens lost;
    const SequenceBuilder::Sink keep = [&](const SequenceRecord& record) {
      unsorted_.push_back(record);
      ++places_[record.length()];
    };
    for (std::uint64_t document = documents.begin; document < documents.end; ++document) {
      builder_.build(document, keep, lost);
    }
    std::uint64_t place = 0;
    for (std::size_t length = 0; length < places_.size(); ++length) {
      const std::uint64_t count = std::exchange(places_[length], place);
      if (count > 0) sorted.runs.push_back({.length = length, .num_records = count});
      place += count;
    }
    sorted.records.resize(unsorted_.size());
    for (const SequenceRecord& record : unsorted_) sorted.records[places_[record.length()]++] = record;
  }

 private:
  const SequenceBuilder& builder_;
  const DocumentRanges& ranges_;
  std::vector<SequenceRecord> unsorted_;
  std::vector<std::uint64_t> places_;  ///< by length: where the next record goes
};

SequenceIndexSummary count_sequences(const SequenceBuilder& builder, const IndexedTokens& tokens,
                                     std::int64_t max_length, std::size_t num_threads) {
  SequenceIndexSummary summary;
  std::vector<std::uint64_t>& counts = summary.histogram.counts;
  counts.resize(static_cast<std::size_t>(max_length) + 1);
  DocumentRanges ranges(tokens);
  OrderedPipeline<DocumentRange, CountedRange> pipeline(num_threads);
  pipeline.run([&](DocumentRange& range) { return ranges.next(range); },
               [&] {
                 return [&](DocumentRange range, CountedRange& counted) {
                   count_range(builder, counts.size(), range, counted);
                 };
               },
               [&](const CountedRange& counted) {
                 for (std::size_t length = 0; length < counts.size(); ++length) {
                   counts[length] += counted.counts[length];
                 }
                 summary.lost.behind_first_sequence += counted.lost.behind_first_sequence;
                 summary.lost.pair_truncation += counted.lost.pair_truncation;
                 summary.random_next += counted.random_next;
               });
  return summary;
}

void scatter_sequences(const SequenceBuilder& builder, const IndexedTokens& tokens, std::size_t num_lengths,
                       std::size_t num_threads, io::ScatterFile& sorted_file, base::Progress& progress) {
  DocumentRanges ranges(tokens);
  OrderedPipeline<DocumentRange, SortedRange> pipeline(num_threads);
  pipeline.run([&](DocumentRange& range) { return ranges.next(range); },
               [&] {
                 return [sorter = RangeSorter(builder, ranges, num_lengths)](
                            DocumentRange range, SortedRange& sorted) mutable { sorter.sort(range, sorted); };
               },
               [&](const SortedRange& sorted) {
                 if (sorted.deferred) {
                   LostTokens lost;
                   builder.build(
                       sorted.documents.begin,
                       [&](const SequenceRecord& record) {
                         sorted_file.append(record.length(), bytes_of_value(record));
                       },
                       lost);
                 }
                 const auto* records = reinterpret_cast<const char*>(sorted.records.data());
                 for (const SortedRange::Run& run : sorted.runs) {
                   const std::string_view bytes(records, run.num_records * sizeof(SequenceRecord));
                   sorted_file.append(run.length, bytes);
                   records += bytes.size();
                 }
                 progress.advance_to(ranges.first_token_of(sorted.documents.end));
               });
  sorted_file.flush();
}

}  // namespace

SequenceIndexSummary write_sequence_index(const IndexedTokens& tokens, const SequenceOptions& options,
                                          Split split, std::size_t num_threads, const std::string& path,
                                          base::Progress& progress) {
  const SequenceBuilder builder(tokens, options, split);
  // Building twice, on all threads, costs less than a temporary file on one.
  SequenceIndexSummary summary = count_sequences(builder, tokens, options.max_length, num_threads);
  const auto& counts = summary.histogram.counts;
  Header header;
  header.num_sequences = summary.histogram.num_sequences();
  header.num_tokens = tokens.num_tokens();
  header.max_length = static_cast<std::uint64_t>(options.max_length);
  io::ScatterFile sorted(path, bytes_of_value(header), sizeof(SequenceRecord), counts);
  scatter_sequences(builder, tokens, counts.size(), num_threads, sorted, progress);
  header.checksum = io::checksum(record_bytes(io::MappedFile(path)));
  sorted.finish(bytes_of_value(header));
  return summary;
}

SequenceIndexWriter::SequenceIndexWriter(const std::string& path, std::int64_t max_length)
    : file_(path), max_length_(max_length) {
  file_.append_value(Header{});
}

void SequenceIndexWriter::add(const SequenceRecord& record) {
  file_.append_value(record);
  checksum_.update(bytes_of_value(record));
  ++num_sequences_;
}

void SequenceIndexWriter::finish(std::uint64_t num_tokens) {
  Header header;
  header.num_sequences = num_sequences_;
  header.num_tokens = num_tokens;
  header.max_length = static_cast<std::uint64_t>(max_length_);
  header.checksum = checksum_.value();
  file_.flush();
  file_.overwrite(0, bytes_of_value(header));
  file_.sync();
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
