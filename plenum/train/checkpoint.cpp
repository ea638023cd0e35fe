#include "plenum/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/io/atomic_directory.h"
#include "plenum/io/checksum.h"
#include "plenum/io/json_file.h"
#include "plenum/io/safetensors.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/named_tensors.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFormat = "plenum-checkpoint";
constexpr int kVersion = 1;
constexpr const char* kWeightsName = "model.safetensors";
constexpr const char* kOptimizerName = "optimizer.safetensors";
constexpr const char* kConfigName = "config.json";
constexpr const char* kStateName = "state.json";
constexpr std::string_view kFirstMoments = "exp_avg.";
constexpr std::string_view kSecondMoments = "exp_avg_sq.";
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kRemovedEnding = ".removed";
constexpr std::string_view kReplacedEnding = ".replaced";

std::string directory_name(std::uint64_t step) {
  return fmt::format("{}{:08}", kStepPrefix, step);
}

/// The step of a checkpoint by the name of its directory; none for other names, unfinished ones too.
std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return {};
  std::uint64_t step = 0;
  const std::string_view digits = name.substr(kStepPrefix.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || directory_name(step) != name) return {};
  return step;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory, error))
    names.push_back(entry.path().filename().string());
  return names;
}

/// Makes a directory vanish from list() before its files go one by one.
void remove_directory(const std::string& path) {
  std::error_code ignored;
  const std::string removed = path + std::string(kRemovedEnding);
  fs::rename(path, removed, ignored);
  fs::remove_all(removed, ignored);
}

/// The text of state.json. Its own checksum is that of all other keys, in order and without spaces.
std::string print_state(const TrainingState& state, const std::vector<io::FileRecord>& files) {
  json root = {{"format", kFormat}, {"version", kVersion}, {"training", to_json_object(state)}};
  for (const io::FileRecord& file : files)
    root["files"].push_back({{"name", file.name}, {"bytes", file.size_bytes}, {"checksum", file.checksum}});
  root["checksum"] = io::format_checksum(io::checksum(root.dump()));
  return root.dump(2) + "\n";
}

/// state.json, with its format, version and checksum verified.
json read_state(const std::string& path) {
  json root = io::read_json_file(path);
  base::require(io::require_key(root, "format", path) == kFormat, "{}: this is no checkpoint", path);
  const json version = io::require_key(root, "version", path);
  base::require(version == kVersion, "{}: version {} is not supported, only {} is", path, version.dump(),
                kVersion);
  const json checksum = io::require_key(root, "checksum", path);
  root.erase("checksum");
  base::require(checksum == io::format_checksum(io::checksum(root.dump())), "{}: the checksum is wrong",
                path);
  return root;
}

void verify_file(const std::string& directory, const char* name, const json& files,
                 const std::string& state_path) {
  const auto record = std::find_if(files.begin(), files.end(), [&](const json& file) {
    return io::require_key(file, "name", state_path) == name;
  });
  base::require(record != files.end(), "{}: the file {} is not listed", state_path, name);
  const std::string path = directory + "/" + name;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  base::require(!error, "{}: {}", path, error.message());
  const json& expected_size = io::require_key(*record, "bytes", state_path);
  base::require(expected_size == size, "{}: the size is wrong: {} bytes, not {}", path, size,
                expected_size.dump());
  base::require(io::require_key(*record, "checksum", state_path) == io::file_checksum(path),
                "{}: the checksum is wrong", path);
}

/// Reads what describes a checkpoint and verifies every file. Throws UserError with the reason.
LoadedCheckpoint verify_checkpoint(const std::string& directory) {
  const std::string path = directory + "/" + kStateName;
  const json root = read_state(path);
  LoadedCheckpoint checkpoint{.directory = directory,
                              .state = parse_training_state(io::require_key(root, "training", path), path),
                              .model = {},
                              .refused = {}};
  base::require(directory_name(checkpoint.state.step) == fs::path(directory).filename().string(),
                "{}: the directory's name must be that of its step, {}", path, checkpoint.state.step);
  const json& files = io::require_key(root, "files", path);
  for (const char* name : {kConfigName, kWeightsName, kOptimizerName})
    verify_file(directory, name, files, path);
  checkpoint.model = model::read_hugging_face_config(directory);
  return checkpoint;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string run_directory, std::size_t keep)
    : directory_(std::move(run_directory) + "/checkpoints"), keep_(keep) {
  base::require(keep >= 1, "at least one checkpoint must be kept: {}", keep);
}

std::vector<std::string> CheckpointStore::list() const {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  for (const std::string& name : names_in(directory_)) {
    if (const std::optional<std::uint64_t> step = step_of(name))
      found.emplace_back(*step, directory_ + "/" + name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> directories;
  for (auto& [step, directory] : found) directories.push_back(std::move(directory));
  return directories;
}

void CheckpointStore::remove_leftovers() const {
  for (const std::string& name : names_in(directory_)) {
    const std::string checkpoint = name.substr(0, name.find('.'));
    if (checkpoint == name || !step_of(checkpoint)) continue;
    if (name == checkpoint + std::string(kReplacedEnding)) {
      io::restore_replaced(directory_ + "/" + checkpoint);
    } else {
      std::error_code ignored;
      fs::remove_all(directory_ + "/" + name, ignored);
    }
  }
}

std::string CheckpointStore::save(const TrainingState& state, const describe::ModelConfig& model,
                                  const CheckpointTensors& tensors) const {
  remove_leftovers();
  std::string directory = directory_ + "/" + directory_name(state.step);
  io::AtomicDirectory output(directory, io::Replace::Yes);
  using Sink = io::AtomicDirectory::Sink;
  std::vector<io::FileRecord> files;
  files.push_back(output.write(kConfigName, model::print_hugging_face_config(model)));
  files.push_back(output.write(kWeightsName, [&](Sink sink) {
    io::write_safetensors(model::named_tensors(tensors.table, tensors.weights), sink);
  }));
  files.push_back(output.write(kOptimizerName, [&](Sink sink) {
    std::vector<io::NamedFloats> moments =
        model::named_tensors(tensors.table, tensors.first_moments, kFirstMoments);
    for (io::NamedFloats& tensor :
         model::named_tensors(tensors.table, tensors.second_moments, kSecondMoments))
      moments.push_back(std::move(tensor));
    io::write_safetensors(std::move(moments), sink);
  }));
  output.write(kStateName, print_state(state, files));
  output.commit();
  remove_old(state.step);
  return directory;
}

/// Checkpoints of later steps, which are there only if they were refused, neither count nor go.
void CheckpointStore::remove_old(std::uint64_t newest_step) const {
  std::vector<std::string> directories = list();
  const auto is_later = [&](const std::string& directory) {
    return step_of(fs::path(directory).filename().string()) > newest_step;
  };
  std::erase_if(directories, is_later);
  for (std::size_t i = 0; i + keep_ < directories.size(); ++i) remove_directory(directories[i]);
}

std::optional<LoadedCheckpoint> CheckpointStore::find_latest(base::Progress& progress) const {
  std::vector<std::string> directories = list();
  std::reverse(directories.begin(), directories.end());
  std::vector<RefusedCheckpoint> refused;
  for (const std::string& directory : directories) {
    try {
      LoadedCheckpoint checkpoint = verify_checkpoint(directory);
      checkpoint.refused = std::move(refused);
      return checkpoint;
    } catch (const base::UserError& error) {
      progress.note(fmt::format("checkpoint refused: {}", error.what()));
      refused.push_back({.directory = directory, .reason = error.what()});
    }
  }
  if (refused.empty()) return {};
  std::string reasons;
  for (const RefusedCheckpoint& checkpoint : refused) reasons += fmt::format("; {}", checkpoint.reason);
  base::fail("no checkpoint can be used; move {} away to begin anew{}", directory_, reasons);
}

std::optional<LoadedCheckpoint> CheckpointStore::load_latest(const CheckpointTensors& tensors,
                                                             base::Progress& progress) const {
  std::optional<LoadedCheckpoint> loaded = find_latest(progress);
  if (!loaded) return {};
  const std::string& directory = loaded->directory;
  model::read_named_tensors(io::SafetensorsFile(directory + "/" + kWeightsName), tensors.table,
                            tensors.weights);
  if (tensors.first_moments.empty() && tensors.second_moments.empty()) return loaded;
  const io::SafetensorsFile optimizer(directory + "/" + kOptimizerName);
  model::read_named_tensors(optimizer, tensors.table, tensors.first_moments, kFirstMoments);
  model::read_named_tensors(optimizer, tensors.table, tensors.second_moments, kSecondMoments);
  return loaded;
}

}  // namespace plenum::train
