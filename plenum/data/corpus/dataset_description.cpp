#include "plenum/data/corpus/dataset_description.h"

#include <filesystem>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"

namespace plenum::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kFormat = "plenum-dataset";
constexpr int kVersion = 1;

OrderedJson split_to_json(const DatasetDescription& description, Split split) {
  const SplitCounts& counts = description.counts[split];
  const SequenceIndexSummary& sequences = description[split];
  return {{"documents", counts.documents},
          {"sentences", counts.sentences},
          {"tokens", counts.tokens},
          {"sequences", sequences.histogram.num_sequences()},
          {"sequence_tokens", sequences.histogram.num_tokens()},
          {"random_next", sequences.random_next},
          {"tokens_behind_first_sequence", sequences.lost.behind_first_sequence},
          {"tokens_cut_from_pairs", sequences.lost.pair_truncation}};
}

void read_split(const OrderedJson& json, SplitCounts& counts, SequenceIndexSummary& sequences) {
  counts = {
      .documents = json.at("documents"), .sentences = json.at("sentences"), .tokens = json.at("tokens")};
  sequences.random_next = json.at("random_next");
  sequences.lost = {.behind_first_sequence = json.at("tokens_behind_first_sequence"),
                    .pair_truncation = json.at("tokens_cut_from_pairs")};
}

OrderedJson tokenizer_to_json(const DatasetDescription& description) {
  const NormalizerRules& rules = description.rules;
  const SpecialTokens& special = description.special;
  return {{"vocabulary_size", description.vocabulary_size},
          {"lowercase", rules.lowercase},
          {"strip_accents", rules.strip_accents ? OrderedJson(*rules.strip_accents) : OrderedJson(nullptr)},
          {"clean_text", rules.clean_text},
          {"handle_chinese_chars", rules.handle_chinese_chars},
          {"pad_id", special.pad},
          {"unk_id", special.unknown},
          {"cls_id", special.cls},
          {"sep_id", special.sep},
          {"mask_id", special.mask}};
}

void read_tokenizer(const OrderedJson& json, DatasetDescription& description) {
  description.vocabulary_size = json.at("vocabulary_size");
  description.rules = {.clean_text = json.at("clean_text"),
                       .handle_chinese_chars = json.at("handle_chinese_chars"),
                       .strip_accents = {},
                       .lowercase = json.at("lowercase")};
  if (!json.at("strip_accents").is_null()) {
    description.rules.strip_accents = json.at("strip_accents").get<bool>();
  }
  description.special = {.pad = json.at("pad_id"),
                         .unknown = json.at("unk_id"),
                         .cls = json.at("cls_id"),
                         .sep = json.at("sep_id"),
                         .mask = json.at("mask_id")};
}

DatasetDescription from_json(const OrderedJson& json, const std::string& path) {
  DatasetDescription description;
  description.max_length = json.at("max_length");
  description.objective = objective_of(json.at("objective").get<std::string>(), path);
  description.seed = json.at("seed");
  const OrderedJson& counts = json.at("counts");
  description.counts.text_bytes = counts.at("text_bytes");
  description.counts.empty_documents = counts.at("empty_documents");
  description.counts.unknown_tokens = counts.at("unknown_tokens");
  description.counts.invalid = invalid_text_from_json(counts);
  description.duplicate_documents = counts.at("duplicate_documents");
  for (const Split split : kSplits) {
    read_split(json.at(std::string(name_of(split))), description.counts[split],
               description.sequences[index_of(split)]);
  }
  description.sequences[index_of(Split::Train)].histogram.counts =
      json.at("histogram").get<std::vector<std::uint64_t>>();
  description.sequences[index_of(Split::Holdout)].histogram.counts =
      json.at("holdout_histogram").get<std::vector<std::uint64_t>>();
  read_tokenizer(json.at("tokenizer"), description);
  description.options = json.at("options");
  for (const OrderedJson& source : json.at("sources")) {
    SourceFile& file = description.sources.emplace_back();
    file.path = source.at("path");
    file.size_bytes = source.at("bytes");
  }
  const InvalidText& invalid = description.counts.invalid;
  base::require(invalid.places == 0 || invalid.first_file < description.sources.size(),
                "{} is damaged, prepare the dataset again: it has no source {}", path, invalid.first_file);
  for (const OrderedJson& file : json.at("files")) {
    description.files.push_back(
        {.name = file.at("name"), .size_bytes = file.at("bytes"), .checksum = file.at("checksum")});
  }
  description.fingerprint = json.at("fingerprint");
  if (json.contains("shard")) {
    description.shard = {.index = json.at("shard").at("index"), .count = json.at("shard").at("count")};
    const DatasetShard& shard = description.shard;
    base::require(shard.count >= 2 && shard.count <= kMostShards && shard.index < shard.count,
                  "{} is damaged, prepare the dataset again: it is of shard {} of {}", path, shard.index,
                  shard.count);
  }
  return description;
}

}  // namespace

double DatasetDescription::unknown_rate() const {
  const std::uint64_t tokens = counts.tokens();
  return tokens == 0 ? 0 : static_cast<double>(counts.unknown_tokens) / static_cast<double>(tokens);
}

double DatasetDescription::duplicate_share() const {
  const std::uint64_t documents = counts.documents();
  return documents == 0 ? 0 : static_cast<double>(duplicate_documents) / static_cast<double>(documents);
}

std::string DatasetDescription::invalid_text() const {
  const InvalidText& invalid = counts.invalid;
  if (invalid.places == 0) return "none";
  return fmt::format("{} bytes in {} places, {}; first at {}:{}", base::format_count(invalid.bytes),
                     base::format_count(invalid.places), rules.clean_text ? "dropped" : "read as U+FFFD",
                     sources.at(invalid.first_file).path, invalid.first_line);
}

OrderedJson to_json(const DatasetDescription& description) {
  const CorpusCounts& counts = description.counts;
  OrderedJson sources = OrderedJson::array();
  for (const SourceFile& file : description.sources) {
    sources.push_back({{"path", file.path}, {"bytes", file.size_bytes}});
  }
  OrderedJson files = OrderedJson::array();
  for (const io::FileRecord& file : description.files) {
    files.push_back({{"name", file.name}, {"bytes", file.size_bytes}, {"checksum", file.checksum}});
  }
  OrderedJson json = {{"format", kFormat},
                      {"version", kVersion},
                      {"max_length", description.max_length},
                      {"objective", name_of(description.objective)},
                      {"seed", description.seed},
                      {"counts",
                       {{"files", description.sources.size()},
                        {"text_bytes", counts.text_bytes},
                        {kInvalidTextKey, invalid_text_to_json<OrderedJson>(counts.invalid)},
                        {"documents", counts.documents()},
                        {"empty_documents", counts.empty_documents},
                        {"sentences", counts[Split::Train].sentences + counts[Split::Holdout].sentences},
                        {"tokens", counts.tokens()},
                        {"unknown_tokens", counts.unknown_tokens},
                        {"unknown_rate", description.unknown_rate()},
                        {"duplicate_documents", description.duplicate_documents},
                        {"duplicate_share", description.duplicate_share()}}},
                      {"train", split_to_json(description, Split::Train)},
                      {"holdout", split_to_json(description, Split::Holdout)},
                      {"histogram", description[Split::Train].histogram.counts},
                      {"holdout_histogram", description[Split::Holdout].histogram.counts},
                      {"tokenizer", tokenizer_to_json(description)},
                      {"options", description.options},
                      {"sources", std::move(sources)},
                      {"files", std::move(files)},
                      {"fingerprint", description.fingerprint}};
  const DatasetShard& shard = description.shard;
  if (!shard.is_whole()) json["shard"] = {{"index", shard.index}, {"count", shard.count}};
  return json;
}

std::string print_by_key(const OrderedJson& object) {
  // Text that is no UTF-8 (a file's name can be such) must not end in an exception.
  const auto print = [](const OrderedJson& value) {
    return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += text.empty() ? "{\n " : ",\n ";
    text += print(key) + ": ";
    if (!value.is_array() || value.empty() || !value.front().is_object()) {
      text += print(value);
      continue;
    }
    for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "[\n  " : ",\n  ") + print(value[i]);
    text += "\n ]";
  }
  return text + "\n}\n";
}

std::string description_directory(const std::string& directory) {
  const std::vector<std::string> shards = shard_directories(directory);
  return shards.empty() ? directory : shards.front();
}

bool is_dataset(const std::string& directory) {
  const std::string path = description_directory(directory) + "/" + std::string(kDatasetFileName);
  if (!io::path_exists(path)) return false;
  const OrderedJson json = OrderedJson::parse(io::read_file(path), nullptr, false);
  return json.is_object() && json.contains("format") && json.at("format") == kFormat;
}

DatasetDescription read_dataset_description(const std::string& directory) {
  const std::string path = description_directory(directory) + "/" + std::string(kDatasetFileName);
  base::require(std::filesystem::exists(path), "{} is no dataset: it has no {}; make one by plenum prepare",
                directory, kDatasetFileName);
  const std::string text = io::read_file(path);
  try {
    const OrderedJson json = OrderedJson::parse(text);
    base::require(json.value("format", "") == kFormat, "{} does not describe a dataset", path);
    const int version = json.at("version");
    base::require(version == kVersion,
                  "{} has format version {}, but this program reads version {}; prepare it again", path,
                  version, kVersion);
    return from_json(json, path);
  } catch (const nlohmann::json::exception& error) {
    base::fail("{} is damaged, prepare the dataset again: {}", path, error.what());
  }
}

}  // namespace plenum::data
