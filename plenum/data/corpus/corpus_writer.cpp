#include "plenum/data/corpus/corpus_writer.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/data/corpus/indexed_tokens.h"

namespace plenum::data {
namespace {

/// Lengths are signed 32-bit numbers in the index; a longer sentence goes on as another one.
constexpr std::uint64_t kLongestSentence = std::uint64_t{1} << 30;

std::array<std::string, 2> per_split(const std::string& directory, std::string_view ending) {
  return {fmt::format("{}/{}{}", directory, name_of(Split::Train), ending),
          fmt::format("{}/{}{}", directory, name_of(Split::Holdout), ending)};
}

std::uint64_t saved_size(const nlohmann::json& sizes, std::string_view name) {
  return sizes.is_null() ? 0 : sizes.at(std::string(name)).get<std::uint64_t>();
}

nlohmann::json to_json(const SplitCounts& counts) {
  return {{"documents", counts.documents}, {"sentences", counts.sentences}, {"tokens", counts.tokens}};
}

SplitCounts split_counts_from(const nlohmann::json& json) {
  return {.documents = json.at("documents"), .sentences = json.at("sentences"), .tokens = json.at("tokens")};
}

}  // namespace

CorpusCounts corpus_counts_from(const nlohmann::json& saved) {
  return {.splits = {split_counts_from(saved.at("train")), split_counts_from(saved.at("holdout"))},
          .empty_documents = saved.at("empty_documents"),
          .unknown_tokens = saved.at("unknown_tokens"),
          .text_bytes = saved.at("text_bytes"),
          .invalid = invalid_text_from_json(saved)};
}

CorpusPaths::CorpusPaths(const std::string& directory)
    : tokens(per_split(directory, ".bin")),
      index(per_split(directory, ".idx")),
      sequences(per_split(directory, ".sequences")),
      documents(per_split(directory, ".documents")),
      hashes(directory + "/documents.hashes") {}

CorpusWriter::SplitFiles::SplitFiles(const CorpusPaths& paths, Split split, const nlohmann::json& sizes)
    : tokens(paths.tokens[index_of(split)], saved_size(sizes, "tokens")),
      lengths(paths.index[index_of(split)], saved_size(sizes, "lengths")),
      documents(paths.documents[index_of(split)], saved_size(sizes, "documents")) {
  if (lengths.size() == 0) lengths.append(std::string(kTokenIndexHeaderBytes, '\0'));
}

CorpusWriter::CorpusWriter(const std::string& directory, TokenWidth width, const HoldoutRule& holdout,
                           const std::optional<nlohmann::json>& saved)
    : holdout_(holdout),
      width_(width),
      files_{SplitFiles(CorpusPaths(directory), Split::Train,
                        saved ? saved->at("train_bytes") : nlohmann::json()),
             SplitFiles(CorpusPaths(directory), Split::Holdout,
                        saved ? saved->at("holdout_bytes") : nlohmann::json())},
      hashes_(CorpusPaths(directory).hashes, saved ? saved->at("hash_bytes").get<std::uint64_t>() : 0) {
  if (!saved) return;
  counts_ = corpus_counts_from(*saved);
  document_is_open_ = saved->at("document_is_open");
  const nlohmann::json& open = saved->at("open_document");
  document_ = {.tokens = open.at("tokens"),
               .sentences = open.at("sentences"),
               .hash = DocumentHash(open.at("hash"), open.at("hashed_sentences"))};
}

nlohmann::json CorpusWriter::save() {
  base::check(can_save(), "state is saved inside a sentence or a document that may be moved");
  for (SplitFiles& split : files_) {
    split.tokens.flush();
    split.lengths.flush();
    split.documents.flush();
  }
  hashes_.flush();
  const auto sizes = [](const SplitFiles& files) -> nlohmann::json {
    return {{"tokens", files.tokens.size()},
            {"lengths", files.lengths.size()},
            {"documents", files.documents.size()}};
  };
  return {{"train_bytes", sizes(files(Split::Train))},
          {"holdout_bytes", sizes(files(Split::Holdout))},
          {"hash_bytes", hashes_.size()},
          {"train", to_json(counts_[Split::Train])},
          {"holdout", to_json(counts_[Split::Holdout])},
          {"empty_documents", counts_.empty_documents},
          {"unknown_tokens", counts_.unknown_tokens},
          {"text_bytes", counts_.text_bytes},
          {kInvalidTextKey, invalid_text_to_json<nlohmann::json>(counts_.invalid)},
          {"document_is_open", document_is_open_},
          {"open_document",
           {{"tokens", document_.tokens},
            {"sentences", document_.sentences},
            {"hash", document_.hash.value()},
            {"hashed_sentences", document_.hash.num_sentences()}}}};
}

void CorpusWriter::sync() const {
  for (const SplitFiles& split : files_) {
    split.tokens.sync();
    split.lengths.sync();
    split.documents.sync();
  }
  hashes_.sync();
}

void CorpusWriter::add(const TokenizedBlock& block) {
  base::check(block.begin.inside_document == document_is_open_, "blocks do not follow each other");
  counts_.unknown_tokens += block.num_unknown;
  counts_.text_bytes += block.text_bytes;
  counts_.invalid.append(block.invalid);
  counts_.empty_documents += block.num_empty_documents;
  if (document_is_open_) add_piece(block.continued, block);
  for (const Split split : kSplits) add_whole(block.whole[index_of(split)], split);
  if (block.has_begun()) {
    document_is_open_ = true;
    add_piece(block.begun, block);
  }
}

void CorpusWriter::add_whole(const WholeDocuments& whole, Split split) {
  SplitCounts& counts = counts_[split];
  SplitFiles& target = files(split);
  target.tokens.append(whole.text.token_bytes);
  target.lengths.append_values(std::span(whole.text.sentence_lengths));
  sentence_ends_.clear();
  for (const std::uint64_t end : whole.sentence_ends) sentence_ends_.push_back(counts.sentences + end);
  target.documents.append_values(std::span<const std::uint64_t>(sentence_ends_));
  hashes_.append_values(std::span(whole.identities));
  counts.documents += whole.sentence_ends.size();
  counts.sentences += whole.text.sentence_lengths.size();
  counts.tokens += whole.text.token_bytes.size() / bytes_of(width_);
}

/// Where a document belongs is known only at its end. One that goes on over blocks is written to the training
/// files and moved at its end if need be.
void CorpusWriter::add_piece(const DocumentPiece& piece, const TokenizedBlock& block) {
  SplitFiles& target = files(Split::Train);
  target.tokens.append(piece.text.token_bytes);
  document_.tokens += piece.text.token_bytes.size() / bytes_of(width_);
  std::span<const std::uint32_t> lengths = piece.text.sentence_lengths;
  const bool last_goes_on = !piece.ends && block.end.inside_sentence;
  if (sentence_is_open_ && !lengths.empty()) {
    sentence_hash_->update(block.continued_sentence);
    sentence_tokens_ += lengths.front();
    if (lengths.size() > 1 || !last_goes_on) end_sentence();
    lengths = lengths.subspan(1);
  }
  document_.hash.append(piece.hash);
  const bool begins_sentence = last_goes_on && !lengths.empty();
  const std::span<const std::uint32_t> whole = lengths.first(lengths.size() - (begins_sentence ? 1 : 0));
  target.lengths.append_values(whole);
  document_.sentences += whole.size();
  if (begins_sentence) {
    sentence_is_open_ = true;
    sentence_tokens_ = lengths.back();
    sentence_hash_.emplace();
    sentence_hash_->update(block.begun_sentence);
  }
  while (sentence_tokens_ > kLongestSentence) {
    target.lengths.append_value(static_cast<std::uint32_t>(kLongestSentence));
    ++document_.sentences;
    sentence_tokens_ -= kLongestSentence;
  }
  if (piece.ends) end_document();
}

void CorpusWriter::end_sentence() {
  if (sentence_is_open_) document_.hash.add_sentence_hash(sentence_hash_->value());
  sentence_is_open_ = false;
  if (sentence_tokens_ > 0) {
    files(Split::Train).lengths.append_value(static_cast<std::uint32_t>(sentence_tokens_));
    ++document_.sentences;
  }
  sentence_tokens_ = 0;
}

void CorpusWriter::end_document() {
  if (sentence_is_open_) end_sentence();
  const OpenDocument done = std::exchange(document_, {});
  document_is_open_ = false;
  if (done.tokens == 0) {
    ++counts_.empty_documents;
    return;
  }
  const std::uint64_t identity = done.hash.identity();
  const Split split = holdout_.split_of(identity);
  if (split != Split::Train) {
    SplitFiles& from = files(Split::Train);
    from.tokens.move_tail(from.tokens.size() - done.tokens * bytes_of(width_), files(split).tokens);
    from.lengths.move_tail(from.lengths.size() - done.sentences * sizeof(std::uint32_t),
                           files(split).lengths);
  }
  SplitCounts& counts = counts_[split];
  counts.documents += 1;
  counts.sentences += done.sentences;
  counts.tokens += done.tokens;
  files(split).documents.append_value(counts.sentences);
  hashes_.append_value(identity);
}

}  // namespace plenum::data
