#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/run_options.h"
#include "plenum/train/sentence_vectors.h"

namespace plenum::cli {
namespace {

class EmbedCommand final : public Command {
 public:
  std::string name() const override { return "embed"; }
  std::string summary() const override { return "Turn texts into sentence vectors, as a NumPy file"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("embed");
    table.add("model", model_, "DIR", "A Hugging Face directory, a run of plenum train, or a checkpoint");
    train::add_checkpoint_option(table, checkpoint_);
    options_.add_to(table);
    train::add_device_option(table, device_);
    table.add("threads", threads_, 1, 4096, "Threads; all cores if not given");
    table.add("json", json_, "Print JSON");
    return {std::move(table)};
  }

  int run() override {
    base::require(!model_.empty(), "no model is given; add --model DIR");
    base::require(!options_.input.empty(), "no texts are given; add --input FILE");
    base::require(!options_.output.empty(), "no place for the vectors is given; add --output FILE.npy");
    ProgressBar bar(stderr);
    const train::ModelSource model = train::find_model(model_, bar, checkpoint_);
    const tensor::Device device =
        train::settle_device(device_, model.config, 1, [&](std::string_view line) { bar.note(line); });
    const train::VectorReport report = train::write_sentence_vectors(
        model, options_, static_cast<std::size_t>(threads_.value_or(base::usable_cores())), device, bar);
    if (report.num_truncated > 0) {
      bar.warn(fmt::format("texts truncated to {} tokens: {}", report.max_length,
                           base::format_count(report.num_truncated)));
    }
    if (report.num_empty > 0) {
      bar.warn(fmt::format("empty texts, with vectors of [CLS] and [SEP] alone: {}",
                           base::format_count(report.num_empty)));
    }
    if (report.num_replaced > 0)
      bar.warn(fmt::format("places that are not UTF-8, read as U+FFFD: {}",
                           base::format_count(report.num_replaced)));
    print(report);
    return 0;
  }

 private:
  void print(const train::VectorReport& report) const {
    if (json_) {
      const nlohmann::ordered_json object = {
          {"output", options_.output},
          {"texts", report.num_texts},
          {"width", report.width},
          {"tokens", report.num_tokens},
          {"max_length", report.max_length},
          {"truncated", report.num_truncated},
          {"empty", report.num_empty},
          {"replaced", report.num_replaced},
          {"pooling", options_.pooling == train::Pooling::Mean ? "mean" : "cls"},
          {"normalized", options_.has_unit_length},
          {"seconds", report.seconds}};
      fmt::print("{}\n", object.dump());
      return;
    }
    fmt::print("wrote {}: {} vectors of width {}, of {} tokens, in {:.1f} s ({} tokens/s)\n", options_.output,
               base::format_count(report.num_texts), report.width, base::format_count(report.num_tokens),
               report.seconds,
               base::format_count(
                   static_cast<std::uint64_t>(static_cast<double>(report.num_tokens) / report.seconds)));
  }

  std::string model_;
  train::CheckpointChoice checkpoint_;
  train::VectorOptions options_;
  train::DeviceChoice device_;
  std::optional<std::int64_t> threads_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_embed_command() {
  return std::make_unique<EmbedCommand>();
}

}  // namespace plenum::cli
