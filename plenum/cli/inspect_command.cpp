#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/cli/terminal.h"
#include "plenum/cli/terminal_plot.h"
#include "plenum/data/batches/padding.h"
#include "plenum/data/corpus/dataset.h"
#include "plenum/data/corpus/dataset_advice.h"
#include "plenum/data/tokenizer/tokenizer.h"

namespace plenum::cli {
namespace {

using base::format_count;
using data::Split;

constexpr int kBatchSize = 32;

struct InspectOptions {
  std::string directory;
  std::int64_t examples = 3;
  bool verify = false;
  bool json = false;
};

struct Example {
  std::uint64_t id = 0;
  std::int64_t length = 0;
  std::string label;  ///< of a pair: what B is
  std::string text;
};

Example make_example(const data::Dataset& dataset, const data::Vocabulary& vocabulary, std::uint64_t id) {
  const data::SequenceRecord record = dataset.record(Split::Train, id);
  std::vector<data::TokenId> tokens;
  std::vector<std::uint8_t> segments;
  dataset.append_sequence(Split::Train, id, tokens, segments);
  Example example{.id = id, .length = static_cast<std::int64_t>(tokens.size()), .label = {}, .text = {}};
  if (record.is_pair()) example.label = record.is_random_next() ? "random next" : "is next";
  example.text = data::decode(vocabulary, tokens);
  return example;
}

/// A sequence near to one that may be in a shard that is not here.
std::uint64_t readable_near(const data::Dataset& dataset, std::uint64_t id) {
  while (id > 0 && !dataset.has(id)) --id;
  while (!dataset.has(id)) ++id;
  return id;
}

/// Sequences spread evenly over the lengths, the shortest and the longest that are here among them.
std::vector<Example> choose_examples(const data::Dataset& dataset, std::int64_t wanted) {
  std::vector<Example> examples;
  const std::uint64_t num_sequences = dataset.num_sequences(Split::Train);
  const std::uint64_t count = std::min(static_cast<std::uint64_t>(wanted), num_sequences);
  if (count == 0) return examples;
  const data::Tokenizer tokenizer = data::Tokenizer::load(dataset.directory(), dataset.description().rules);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t id = count == 1 ? num_sequences / 2 : i * (num_sequences - 1) / (count - 1);
    examples.push_back(make_example(dataset, tokenizer.vocabulary(), readable_near(dataset, id)));
  }
  return examples;
}

struct Padding {
  double to_max_length = 0;
  double to_longest = 0;
};

Padding padding_of(const data::Dataset& dataset) {
  const packing::LengthHistogram& histogram = dataset.histogram(Split::Train);
  return {.to_max_length = data::padding_to_max_length(histogram, dataset.max_length()),
          .to_longest = data::padding_to_longest(histogram, kBatchSize)};
}

std::vector<std::uint64_t> shards_here(const data::Dataset& dataset) {
  std::vector<std::uint64_t> indices;
  for (std::uint64_t index = 0; index < dataset.num_shards(); ++index) {
    if (dataset.has_shard(index)) indices.push_back(index);
  }
  return indices;
}

void print_json(const data::Dataset& dataset, const std::vector<Example>& examples) {
  nlohmann::ordered_json json = data::to_json(dataset.description());
  const Padding padding = padding_of(dataset);
  json["padding"] = {{"to_max_length", padding.to_max_length},
                     {"to_longest_of_batch", padding.to_longest},
                     {"batch_size", kBatchSize}};
  if (dataset.num_shards() > 1) json["shards_here"] = shards_here(dataset);
  json["examples"] = nlohmann::ordered_json::array();
  for (const Example& example : examples) {
    nlohmann::ordered_json entry = {{"id", example.id}, {"length", example.length}, {"text", example.text}};
    if (!example.label.empty()) entry["label"] = example.label;
    json["examples"].push_back(std::move(entry));
  }
  fmt::print("{}", data::print_by_key(json));
}

void print_shards(const data::Dataset& dataset) {
  if (dataset.num_shards() == 1) return;
  if (dataset.is_whole()) {
    fmt::print("in {} shards, all of them here\n", dataset.num_shards());
    return;
  }
  fmt::print("of {} shards here: {}; what is said is said of the whole dataset\n", dataset.num_shards(),
             fmt::join(shards_here(dataset), ", "));
}

void print_report(const data::Dataset& dataset, const std::vector<Example>& examples) {
  const data::DatasetDescription& description = dataset.description();
  const data::SplitCounts& train = description.counts[Split::Train];
  const data::SplitCounts& holdout = description.counts[Split::Holdout];
  const packing::LengthHistogram& histogram = dataset.histogram(Split::Train);
  const std::string boundary = data::document_boundary(description);
  fmt::print("{}: {} sequences ({}), {:.0f} tokens on average, at most {}\n", dataset.directory(),
             format_count(histogram.num_sequences()), data::name_of(description.objective),
             histogram.mean_length(), dataset.max_length());
  fmt::print("from {} documents{}, {} sentences, {} tokens\n", format_count(train.documents),
             boundary.empty() ? "" : " (" + boundary + ")", format_count(train.sentences),
             format_count(train.tokens));
  print_shards(dataset);
  if (holdout.documents > 0) {
    fmt::print("held out: {} sequences from {} documents\n",
               format_count(dataset.num_sequences(Split::Holdout)), format_count(holdout.documents));
  }
  fmt::print(
      "vocabulary of {} tokens, {:.3f} % of the text unknown; {:.2f} % of the documents are duplicates\n",
      format_count(description.vocabulary_size), 100 * description.unknown_rate(),
      100 * description.duplicate_share());
  if (description.counts.invalid.places > 0) fmt::print("not UTF-8: {}\n", description.invalid_text());
  constexpr int kPlotWidth = 78;
  constexpr int kPlotHeight = 10;
  fmt::print("\n{}\n", draw_histogram(histogram, kPlotWidth, kPlotHeight));
  const Padding padding = padding_of(dataset);
  fmt::print(
      "padding: {:.1f} % of a run padded to {} tokens, {:.1f} % padded to the longest of {} at random\n",
      100 * padding.to_max_length, dataset.max_length(), 100 * padding.to_longest, kBatchSize);
  for (const Example& example : examples) {
    fmt::print("\nsequence {}, {} tokens{}\n  {}\n", format_count(example.id), example.length,
               example.label.empty() ? "" : ", " + example.label, example.text);
  }
}

class InspectCommand final : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override { return "Show what a dataset holds: examples, lengths, padding"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("inspect");
    table.add("directory", options_.directory, "DIR", "Dataset made by plenum prepare").positional = true;
    table.add("examples", options_.examples, 0, 10'000, "Number of sequences to show as text");
    table.add("verify", options_.verify, "Verify the checksums of all files");
    table.add("json", options_.json, "Print JSON");
    return {std::move(table)};
  }

  int run() override {
    base::require(!options_.directory.empty(),
                  "no dataset is given; name the directory that plenum prepare made");
    const data::Dataset dataset(options_.directory);
    if (options_.verify) {
      ProgressBar bar(stderr);
      dataset.verify(bar);
    }
    const std::vector<Example> examples = choose_examples(dataset, options_.examples);
    for (const std::string& line : data::warnings_about(dataset.description()))
      say(stderr, fmt::format("warning: {}\n", line));
    if (options_.json) {
      print_json(dataset, examples);
    } else {
      print_report(dataset, examples);
      if (options_.verify) fmt::print("\nverified: every file is as it was written\n");
    }
    return 0;
  }

 private:
  InspectOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace plenum::cli
