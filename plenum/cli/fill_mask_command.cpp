#include <cstdio>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "plenum/base/check.h"
#include "plenum/base/machine.h"
#include "plenum/cli/command.h"
#include "plenum/cli/progress_bar.h"
#include "plenum/train/mask_filling.h"
#include "plenum/train/run_defaults.h"
#include "plenum/train/run_options.h"

namespace plenum::cli {
namespace {

/// The lines of standard input, without empty ones.
std::vector<std::string> read_lines() {
  std::string text;
  std::vector<char> chunk(std::size_t{1} << 16);
  while (const ssize_t count = ::read(STDIN_FILENO, chunk.data(), chunk.size())) {
    base::require(count > 0, "cannot read standard input");
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

void print_text(const std::string& text, const std::vector<std::vector<train::Guess>>& masks) {
  fmt::print("{}\n", text);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks.size() > 1) fmt::print("  [MASK] {}\n", i + 1);
    for (const train::Guess& guess : masks[i]) {
      fmt::print("  {:6.2f} %  {}\n", 100 * guess.probability, guess.token);
    }
  }
}

nlohmann::ordered_json to_json(const std::string& text, const std::vector<std::vector<train::Guess>>& masks) {
  nlohmann::ordered_json object = {{"text", text}, {"masks", nlohmann::ordered_json::array()}};
  for (const std::vector<train::Guess>& mask : masks) {
    nlohmann::ordered_json guesses = nlohmann::ordered_json::array();
    for (const train::Guess& guess : mask) {
      guesses.push_back({{"token", guess.token}, {"probability", guess.probability}});
    }
    object["masks"].push_back(std::move(guesses));
  }
  return object;
}

class FillMaskCommand final : public Command {
 public:
  std::string name() const override { return "fill-mask"; }
  std::string summary() const override { return "Predict the [MASK]s of a text"; }
  std::vector<base::OptionTable> tables() override {
    base::OptionTable table("fill-mask");
    table.add("text", texts_, "TEXT", "Texts with [MASK]; lines of standard input if none is given")
        .positional = true;
    table.add("model", model_, "DIR", "A Hugging Face directory, a run of plenum train, or a checkpoint");
    train::add_checkpoint_option(table, checkpoint_);
    table.add("top", top_, 1, 1'000'000, "How many words to show for each [MASK]");
    train::add_device_option(table, device_);
    table.add("threads", threads_, 1, 4096, "Threads; all cores if not given");
    table.add("json", json_, "Print a JSON object for each text");
    return {std::move(table)};
  }

  int run() override {
    base::require(!model_.empty(), "no model is given; add --model DIR");
    const std::vector<std::string> texts = texts_.empty() ? read_lines() : texts_;
    base::require(!texts.empty(), "no text is given; write one with a [MASK] in it");
    ProgressBar notes(stderr);
    const train::Note note = [&](std::string_view line) { notes.note(line); };
    std::vector<std::string> device_notes;  // for when the texts are known to be good
    const train::Note on_device = [&](std::string_view line) { device_notes.emplace_back(line); };
    const train::ModelSource model = train::find_model(model_, notes, checkpoint_);
    train::MaskFilling filling(model, texts,
                               static_cast<std::size_t>(threads_.value_or(base::usable_cores())),
                               train::settle_device(device_, model.config, 1, on_device), note);
    for (const std::string& line : device_notes) notes.note(line);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::vector<std::vector<train::Guess>> masks = filling.guesses(i, static_cast<std::size_t>(top_));
      if (json_) {
        fmt::print("{}\n",
                   to_json(texts[i], masks).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      } else {
        print_text(texts[i], masks);
      }
    }
    return 0;
  }

 private:
  std::vector<std::string> texts_;
  std::string model_;
  std::int64_t top_ = 5;
  train::CheckpointChoice checkpoint_;
  train::DeviceChoice device_;
  std::optional<std::int64_t> threads_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_fill_mask_command() {
  return std::make_unique<FillMaskCommand>();
}

}  // namespace plenum::cli
