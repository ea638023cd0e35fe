#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/data/batches/padding.h"
#include "plenum/data/corpus/dataset_advice.h"
#include "plenum/data/corpus/prepare.h"
#include "plenum/io/directory.h"

namespace plenum::cli {
namespace {

using base::format_bytes;
using base::format_count;
using data::Split;

void print_row(std::string_view name, const std::string& value) {
  fmt::print("  {:<13} {}\n", name, value);
}

/// `model` is the option that says which model the dataset is for.
void print_summary(const data::PrepareResult& result, const std::string& output, const std::string& model,
                   double seconds) {
  const data::DatasetDescription& description = result.description;
  const data::CorpusCounts& counts = description.counts;
  const data::SplitCounts& holdout = counts[Split::Holdout];
  const packing::LengthHistogram& histogram = description[Split::Train].histogram;
  const auto with_holdout = [&](std::uint64_t total, std::uint64_t set_aside) {
    return format_count(total) +
           (holdout.documents == 0 ? "" : fmt::format(" ({} of them held out)", format_count(set_aside)));
  };
  const std::string boundary = data::document_boundary(description);
  fmt::print("{} {}\n", result.was_there ? "already prepared:" : "prepared", output);
  print_row("documents",
            with_holdout(counts.documents(), holdout.documents) + (boundary.empty() ? "" : ", " + boundary) +
                (counts.empty_documents == 0
                     ? ""
                     : fmt::format(", {} empty ones left out", format_count(counts.empty_documents))));
  print_row("duplicates", fmt::format("{} ({:.2f} %)", format_count(description.duplicate_documents),
                                      100 * description.duplicate_share()));
  print_row("sentences", with_holdout(counts[Split::Train].sentences + holdout.sentences, holdout.sentences));
  print_row("tokens", fmt::format("{}, {:.3f} % unknown", with_holdout(counts.tokens(), holdout.tokens),
                                  100 * description.unknown_rate()));
  const std::uint64_t held_sequences = description[Split::Holdout].histogram.num_sequences();
  print_row("sequences", fmt::format("{}, {:.0f} tokens on average, at most {}",
                                     with_holdout(histogram.num_sequences() + held_sequences, held_sequences),
                                     histogram.mean_length(), description.max_length));
  if (!description.shard.is_whole()) {
    print_row("shards", fmt::format("{}: {} and so on, for --data-sharding local", description.shard.count,
                                    data::shard_name(0)));
  }
  if (counts.invalid.places > 0) print_row("not UTF-8", description.invalid_text());
  const data::LostTokens& lost = description[Split::Train].lost;
  if (lost.behind_first_sequence > 0) {
    print_row("cut off",
              fmt::format("{} tokens behind first sequences", format_count(lost.behind_first_sequence)));
  }
  if (lost.pair_truncation > 0) {
    print_row("cut off",
              fmt::format("{} tokens of pairs that were too long", format_count(lost.pair_truncation)));
  }
  // Much of it would be no merit of unpadded training, but a sign of text that is cut too short.
  if (!data::has_short_sequences(description)) {
    print_row("padding", fmt::format("none in plenum train; padded to {} tokens it would be {:.1f} %",
                                     description.max_length,
                                     100 * data::padding_to_max_length(histogram, description.max_length)));
  }
  if (!result.was_there) {
    const std::uint64_t bytes = counts.text_bytes - result.resumed_bytes;
    print_row("time", fmt::format("{} for {} of text, {:.1f} MB/s", base::format_seconds(seconds),
                                  format_bytes(bytes), static_cast<double>(bytes) / 1e6 / seconds));
  }
  fmt::print("next: plenum train --data {0} --run DIR {1}, plenum inspect {0}, or plenum pack --data {0}\n",
             output, model);
}

/// What a model begins with: the one whose tokenizer was taken, if it is there.
std::string starting_model(const std::string& tokenizer) {
  const bool has_model = !tokenizer.empty() && io::path_exists(tokenizer + "/config.json");
  return has_model ? "--init " + tokenizer : "--model bert-mini";
}

class PrepareCommand final : public Command {
 public:
  std::string name() const override { return "prepare"; }
  std::string summary() const override { return "Turn text into a dataset of tokenized sequences"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable prepare = options_.table();
    prepare.add("json", json_, "Print the summary as JSON");
    prepare.add("quiet", quiet_, "Show warnings but no progress");
    return {std::move(prepare)};
  }

  int run() override {
    const auto begin = std::chrono::steady_clock::now();
    data::PrepareResult result;
    {
      WarningsOnly warnings(stderr);
      ProgressBar bar(stderr);
      base::Progress& progress = quiet_ ? static_cast<base::Progress&>(warnings) : bar;
      result = data::prepare(options_, progress);
      for (const std::string& line : data::warnings_about(result.description)) progress.warn(line);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (json_) {
      nlohmann::ordered_json json = data::to_json(result.description);
      json["directory"] = options_.output;
      json["already_prepared"] = result.was_there;
      json["mean_length"] = result.description[Split::Train].histogram.mean_length();
      json["seconds"] = seconds;
      fmt::print("{}", data::print_by_key(json));
    } else {
      print_summary(result, options_.output, starting_model(options_.tokenizer_path), seconds);
    }
    return 0;
  }

 private:
  data::PrepareOptions options_;
  bool json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_prepare_command() {
  return std::make_unique<PrepareCommand>();
}

}  // namespace plenum::cli
