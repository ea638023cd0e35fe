#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/base/units.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/train/model_export.h"

namespace plenum::cli {
namespace {

class ExportCommand final : public Command {
 public:
  std::string name() const override { return "export"; }
  std::string summary() const override { return "Write a trained model as a Hugging Face directory"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("export");
    table.add("model", model_, "DIR", "A run of plenum train, or one of its checkpoints").positional = true;
    train::add_checkpoint_option(table, checkpoint_);
    table.add("output", output_, "DIR", "Where the Hugging Face directory goes");
    table.add("overwrite", overwrite_, "Replace an export that is there already");
    table.add("threads", threads_, 1, 4096, "Threads; all cores if not given");
    table.add("json", json_, "Print JSON");
    return {std::move(table)};
  }

  int run() override {
    base::require(!model_.empty(), "no model is given; name a run of plenum train");
    base::require(!output_.empty(), "no place for the model is given; add --output DIR");
    ProgressBar notes(stderr);
    const train::ModelSource source = train::find_model(model_, notes, checkpoint_);
    const train::ExportReport report =
        train::export_model(source, output_, overwrite_ ? io::Replace::Yes : io::Replace::No,
                            static_cast<std::size_t>(threads_.value_or(base::usable_cores())),
                            [&](std::string_view line) { notes.note(line); });
    if (json_) {
      const nlohmann::ordered_json object = {{"source", source.directory},
                                             {"output", output_},
                                             {"parameters", report.num_parameters},
                                             {"bytes", report.num_bytes},
                                             {"logits_compared", report.logits_compared}};
      fmt::print("{}\n", object.dump());
      return 0;
    }
    fmt::print("wrote {} from {}{}: {} parameters, {}\n", output_, source.directory,
               source.remark.empty() ? "" : fmt::format(" ({})", source.remark),
               base::format_count(static_cast<std::uint64_t>(report.num_parameters)),
               base::format_bytes(report.num_bytes));
    fmt::print("verified: read back, {} logits are the same bit for bit\n",
               base::format_count(static_cast<std::uint64_t>(report.logits_compared)));
    return 0;
  }

 private:
  std::string model_;
  train::CheckpointChoice checkpoint_;
  std::string output_;
  bool overwrite_ = false;
  std::optional<std::int64_t> threads_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_export_command() {
  return std::make_unique<ExportCommand>();
}

}  // namespace plenum::cli
