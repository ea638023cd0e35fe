#include "plenum/data/corpus/dataset_advice.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "plenum/base/units.h"

namespace plenum::data {
namespace {

/// Sequences that fill less than this share of the greatest length are far below it.
constexpr double kShortShare = 1.0 / 3;
/// Vocabularies that fit their text leave below 1 % unknown.
constexpr double kManyUnknown = 0.05;

std::string option(const DatasetDescription& description, const char* name) {
  const nlohmann::ordered_json& options = description.options;
  const bool is_text = options.is_object() && options.contains(name) && options.at(name).is_string();
  return is_text ? options.at(name).get<std::string>() : "";
}

/// The rule for documents; empty where no source is a .txt file.
std::string document_rule(const DatasetDescription& description) {
  const bool has_text = std::ranges::any_of(
      description.sources, [](const SourceFile& file) { return format_of(file.path) == TextFormat::Lines; });
  return has_text ? option(description, "documents") : "";
}

std::string why_short(const DatasetDescription& description) {
  const std::string rule = document_rule(description);
  if (rule == "blank-line") return "blank lines end documents; --documents file makes each file one";
  if (rule == "line") return "each line is a document; --documents blank-line or file makes longer ones";
  return "the documents are short; choose a lower --max-length";
}

}  // namespace

bool has_short_sequences(const DatasetDescription& description) {
  const double mean = description[Split::Train].histogram.mean_length();
  return mean < kShortShare * static_cast<double>(description.max_length);
}

std::string document_boundary(const DatasetDescription& description) {
  const std::string rule = document_rule(description);
  if (rule == "blank-line") return "separated by blank lines";
  if (rule == "line") return "one per line";
  return rule == "file" ? "one per file" : "";
}

std::vector<std::string> warnings_about(const DatasetDescription& description) {
  std::vector<std::string> lines;
  if (has_short_sequences(description)) {
    lines.push_back(fmt::format("sequences have {:.0f} tokens on average, far below --max-length {}: {}",
                                description[Split::Train].histogram.mean_length(), description.max_length,
                                why_short(description)));
  }
  if (description.unknown_rate() > kManyUnknown) {
    const bool is_trained = !option(description, "train-vocab").empty();
    lines.push_back(
        fmt::format("{:.1f} % of the tokens are unknown: {}", 100 * description.unknown_rate(),
                    is_trained ? "words of more than 100 letters, or letters that are too rare to be in "
                                 "the vocabulary"
                               : "the vocabulary does not fit the text; --train-vocab makes one that does"));
  }
  const double holdout = std::strtod(option(description, "holdout").c_str(), nullptr);
  const std::uint64_t documents = description.counts.documents();
  if (holdout > 0 && description.counts[Split::Holdout].documents == 0) {
    lines.push_back(fmt::format(
        "nothing is held out: --holdout sets whole documents aside, and there {} {}; raise it, or divide the "
        "text into more documents (--documents)",
        documents == 1 ? "is only" : "are only", base::format_count(documents)));
  }
  return lines;
}

}  // namespace plenum::data
