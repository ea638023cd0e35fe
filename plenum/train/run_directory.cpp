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
constexpr std::array<std::string_view, 20> kMayChange = {"run",
                                                         "device",
                                                         "steps",
                                                         "ranks",
                                                         "threads",
                                                         "recompute",
                                                         "stop-after",
                                                         "max-skipped-steps",
                                                         "init",
                                                         "data",
                                                         "packing-plan",
                                                         "trace-step",
                                                         "trace",
                                                         "quiet",
                                                         "micro-batch-tokens",
                                                         "checkpoint-every",
                                                         "keep",
                                                         "on-full-disk",
                                                         "eval-every",
                                                         "eval-sequences"};

constexpr std::array<const char*, 3> kTokenizerFiles = {"vocab.txt", "tokenizer.json",
                                                        "tokenizer_config.json"};

/// An option with another value than before.
struct Change {
  std::string section;
  std::string key;
  std::string before;
  std::string now;
};

std::string value_text(const base::Option& option) {
  const std::vector<std::string> values = option.get();
  return values.empty() ? "not set" : fmt::format("'{}'", fmt::join(values, ", "));
}

std::vector<Change> changes_between(RunOptions earlier, RunOptions now) {
  const std::vector<base::OptionTable> earlier_tables = earlier.tables();
  const std::vector<base::OptionTable> tables = now.tables();
  std::vector<Change> changes;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    for (std::size_t i = 0; i < tables[t].options().size(); ++i) {
      const base::Option& before = earlier_tables[t].options()[i];
      const base::Option& option = tables[t].options()[i];
      if (before.get() == option.get()) continue;
      changes.push_back({tables[t].name(), option.name, value_text(before), value_text(option)});
    }
  }
  return changes;
}

bool may_change(const Change& change) {
  return std::find(kMayChange.begin(), kMayChange.end(), change.key) != kMayChange.end();
}

}  // namespace

RunPaths::RunPaths(const std::string& directory)
    : config(directory + "/config.toml"),
      lock(directory + "/lock"),
      metrics(directory + "/metrics.jsonl"),
      evaluations(directory + "/evaluations.jsonl"),
      tensorboard(directory + "/tensorboard"),
      tokenizer(directory + "/tokenizer"),
      tuning(directory + "/tuning.json"),
      checkpoints(directory + "/checkpoints") {}

bool is_run_directory(const std::string& directory) {
  return io::path_exists(RunPaths(directory).config);
}

RunOptions read_run_options(const std::string& directory) {
  RunOptions options;
  const std::vector<base::OptionTable> tables = options.tables();
  io::set_options(io::read_config_file(RunPaths(directory).config, tables), tables);
  return options;
}

RunDirectory::RunDirectory(const RunOptions& options, const data::Dataset& dataset)
    : dataset_(dataset), options_(options), directory_(options.run.directory), paths_(directory_) {
  is_new_ = io::names_in(directory_).empty();
  base::require(is_new_ || io::path_exists(paths_.lock),
                "{} is not the directory of a run and not empty; choose another --run", directory_);
  if (!is_new_) {
    lock();
    const CheckpointStore checkpoints(directory_, 1);
    checkpoints.remove_leftovers();
    is_new_ = checkpoints.list().empty();
  }
  if (is_new_) {
    if (is_run_directory(directory_)) {
      changes_.push_back(fmt::format("{} has no checkpoint and begins anew; its options are in {}",
                                     directory_, paths_.config));
    }
    return;
  }
  base::require(is_run_directory(directory_),
                "{} has checkpoints but no config.toml that says how they came about; put it back, or choose "
                "another --run",
                directory_);
  take_up();
}

void RunDirectory::write_config() const {
  RunOptions options = options_;
  options.run.process = {};
  io::write_file(paths_.config, io::print_config(options.tables()));
}

void RunDirectory::lock() {
  lock_.emplace(paths_.lock, fmt::format("another process trains {}; wait for it, or stop it", directory_));
}

/// A run without a checkpoint has nothing to lose: it is begun anew, whatever its configuration was.
void RunDirectory::make() {
  if (!is_new_) return;
  std::vector<std::string> tokenizer;  // read first: a dataset may lack a file of it
  for (const char* name : kTokenizerFiles)
    tokenizer.push_back(io::read_file(fmt::format("{}/{}", dataset_.directory(), name)));
  if (!lock_) {
    io::make_directories(directory_);
    lock();
    base::require(io::names_in(directory_).size() == 1,
                  "another process began this run meanwhile; give the command again to go on with it: {}",
                  directory_);
  }
  io::make_directories(paths_.tokenizer);
  for (std::size_t i = 0; i < tokenizer.size(); ++i)
    io::write_file(fmt::format("{}/{}", paths_.tokenizer, kTokenizerFiles[i]), tokenizer[i]);
}

void RunDirectory::take_up() {
  const RunOptions earlier = read_run_options(directory_);
  for (const Change& change : changes_between(earlier, options_)) {
    base::require(may_change(change),
                  "{} belongs to another configuration: {} in [{}] is {} there and {} here; choose another "
                  "--run, or give what {} says",
                  directory_, change.key, change.section, change.before, change.now, paths_.config);
    if (change.key == "steps") {
      changes_.push_back(
          fmt::format("steps was {} and is now {}: steps that are left have the learning rates of the new "
                      "length",
                      change.before, change.now));
    }
    if (change.key == "device") {
      changes_.push_back(
          fmt::format("device was {} and is now {}: what is computed is rounded in another way from here on",
                      change.before, change.now));
    }
  }
}

}  // namespace plenum::train
