#include "plenum/train/run_directory.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/io/config_file.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/train/checkpoint.h"

namespace plenum::train {
namespace {

/// Options whose change leaves what is computed as it is, but for the order of sums over ranks and
/// micro-batches. Whether data and packing plan are the same is for the checkpoint to say, which knows the
/// fingerprint of the one and the checksum of the other; where the weights came from no longer matters; and
/// steps is told (RunDirectory::changes).
constexpr std::array<std::string_view, 46> kMayChange = {"run",
                                                         "device",
                                                         "steps",
                                                         "ranks",
                                                         "share-gpu",
                                                         "tp",
                                                         "pp",
                                                         "schedule",
                                                         "stage-layers",
                                                         "chunks",
                                                         "fill",
                                                         "micro-batches",
                                                         "shard",
                                                         "bucket-bytes",
                                                         "threads",
                                                         "recompute",
                                                         "emulate-link",
                                                         "stop-after",
                                                         "max-skipped-steps",
                                                         "init",
                                                         "data",
                                                         "data-sharding",
                                                         "attention-cost",
                                                         "packing-plan",
                                                         "trace-step",
                                                         "trace",
                                                         "overlay",
                                                         "hang-limit",
                                                         "json",
                                                         "quiet",
                                                         "gpus",
                                                         "restart",
                                                         "interface",
                                                         "reduction",
                                                         "reduce-dtype",
                                                         "micro-batch-tokens",
                                                         "checkpoint-every",
                                                         "keep",
                                                         "on-full-disk",
                                                         "eval-every",
                                                         "eval-sequences",
                                                         "stop-when-worse",
                                                         "train",
                                                         "dev",
                                                         "test"};

constexpr std::size_t kTokenizerFiles = 3;

bool may_change(std::string_view name) {
  return std::find(kMayChange.begin(), kMayChange.end(), name) != kMayChange.end();
}

std::string value_text(const base::Option& option) {
  const std::vector<std::string> values = option.get();
  return values.empty() ? "not set" : fmt::format("'{}'", fmt::join(values, ", "));
}

/// An option of [run] whose change is worth a line, with what becomes of it.
struct ToldChange {
  const char* name;
  const char* consequence;
};
constexpr std::array<ToldChange, 4> kToldChanges = {
    {{"fill", "K-FAC's inverses, or SOAP's bases, are of other steps from here on"},
     {"steps", "steps that are left have the learning rates of the new length"},
     {"reduce-dtype", "gradients are rounded in another way from here on"},
     {"device", "what is computed is rounded in another way from here on"}}};

}  // namespace

OptionTexts option_texts(RunOptions options) {
  OptionTexts texts;
  for (const base::OptionTable& table : options.tables()) {
    for (const base::Option& option : table.options())
      texts[fmt::format("{} in [{}]", option.name, table.name())] = value_text(option);
  }
  return texts;
}

RunPaths::RunPaths(const std::string& directory)
    : config(directory + "/config.toml"),
      lock(directory + "/lock"),
      metrics(directory + "/metrics.jsonl"),
      evaluations(directory + "/evaluations.jsonl"),
      events(directory + "/events.jsonl"),
      step(directory + "/step.json"),
      tensorboard(directory + "/tensorboard"),
      tokenizer(directory + "/tokenizer"),
      tuning(directory + "/tuning.json"),
      schedule(directory + "/schedule.txt"),
      checkpoints(directory + "/checkpoints"),
      model(directory + "/model"),
      logs(directory + "/logs") {}

bool is_run_directory(const std::string& directory) {
  return io::path_exists(RunPaths(directory).config);
}

void require_known_options(const RunOptions& options) {
  const std::string& directory = options.run.directory;
  const bool says_model = !options.model.preset.empty() || !options.model.init.empty();
  if (directory.empty() || says_model || is_run_directory(directory)) return;
  base::require(!io::path_exists(RunPaths(directory).checkpoints),
                "{0} has checkpoints but no config.toml, which keeps the options of the run; put it back, or "
                "give plenum train --run {0} all options that the run was begun with: they are compared with "
                "its newest checkpoint and kept again",
                directory);
}

RunOptions read_run_options(const std::string& directory) {
  RunOptions options;
  const std::vector<base::OptionTable> tables = options.all_tables();
  const std::string path = RunPaths(directory).config;
  io::set_options(io::read_config_file(path, tables, io::FormerNames::Accepted), tables);
  options.run.process = {};  // earlier versions kept it
  return options;
}

RunDirectory::RunDirectory(const RunOptions& options, const TrainingData& data)
    : data_(data), options_(options), directory_(options.run.directory), paths_(directory_) {
  is_new_ = kept_names().empty();
  base::require(is_new_ || io::path_exists(paths_.lock),
                "{} is not the directory of a run and not empty; choose another --run", directory_);
  if (!is_new_) {
    lock();
    const CheckpointStore checkpoints(directory_, 1);
    checkpoints.remove_leftovers();
    is_new_ = checkpoints.list().empty();
  }
  has_config_ = is_run_directory(directory_);
  if (is_new_) {
    if (has_config_) {
      changes_.push_back(fmt::format("{} has no checkpoint and begins anew; its options are in {}",
                                     directory_, paths_.config));
    }
    return;
  }
  if (has_config_) take_up();
}

void RunDirectory::write_config(const Processes& processes) const {
  RunOptions options = options_;
  options.run.process = {};
  if (!processes.is_alone()) {
    options.run.ranks = 1;
    options.run.threads.reset();
  }
  io::write_file(paths_.config, io::print_config(options.tables()));
}

/// Without what processes leave there before they have found each other.
std::vector<std::string> RunDirectory::kept_names() const {
  std::vector<std::string> names = io::names_in(directory_);
  std::erase_if(names, [](const std::string& name) { return name == "logs" || name == "control.json"; });
  return names;
}

void RunDirectory::lock() {
  lock_.emplace(paths_.lock, fmt::format("another process trains {}; wait for it, or stop it", directory_));
}

/// A run without a checkpoint has nothing to lose: it is begun anew, whatever its configuration was.
void RunDirectory::make() {
  if (!is_new_) {
    if (lost_config()) mended_.push_back(fmt::format("{} was gone and is written again", paths_.config));
    if (io::names_in(paths_.tokenizer).size() >= kTokenizerFiles) return;
    write_tokenizer();
    mended_.push_back(fmt::format("{} was gone and is written again", paths_.tokenizer));
    return;
  }
  static_cast<void>(data_.tokenizer_files());  // first: a dataset may lack one
  if (!lock_) {
    io::make_directories(directory_);
    lock();
    base::require(kept_names().size() == 1,
                  "another process began this run meanwhile; give the command again to resume it: {}",
                  directory_);
  }
  write_tokenizer();
}

void RunDirectory::write_tokenizer() const {
  io::make_directories(paths_.tokenizer);
  for (const auto& [name, bytes] : data_.tokenizer_files())
    io::write_file(fmt::format("{}/{}", paths_.tokenizer, name), bytes);
}

OptionTexts RunDirectory::kept_options() const {
  OptionTexts texts = option_texts(options_);
  std::erase_if(texts,
                [](const auto& text) { return may_change(text.first.substr(0, text.first.find(' '))); });
  return texts;
}

void RunDirectory::require_same(const OptionTexts& earlier) const {
  for (const auto& [name, value] : kept_options()) {
    const auto before = earlier.find(name);
    if (before == earlier.end() || before->second == value) continue;
    base::fail(
        "{} belongs to another configuration: {} is {} there and {} here; choose another --run, or give what "
        "it had",
        directory_, name, before->second, value);
  }
}

void RunDirectory::take_up() {
  const OptionTexts earlier = option_texts(read_run_options(directory_));
  require_same(earlier);
  const OptionTexts now = option_texts(options_);
  for (const ToldChange& told : kToldChanges) {
    const std::string key = fmt::format("{} in [run]", told.name);
    if (earlier.at(key) == now.at(key)) continue;
    changes_.push_back(fmt::format("{} was {} and is now {}: {}", told.name, earlier.at(key), now.at(key),
                                   told.consequence));
  }
}

}  // namespace plenum::train
