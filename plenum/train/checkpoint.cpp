#include "plenum/train/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/io/atomic_directory.h"
#include "plenum/io/block_sums.h"
#include "plenum/io/checksum.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/io/json_file.h"
#include "plenum/model/hugging_face_config.h"

namespace plenum::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFormat = "plenum-checkpoint";
constexpr int kVersion = 2;
constexpr const char* kConfigName = "config.json";
constexpr const char* kStateName = "state.json";
/// All but state.json, which describes them.
constexpr std::array<const char*, 3> kFileNames = {kConfigName, TensorFiles::kWeightsName,
                                                   TensorFiles::kOptimizerName};
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kRemovedEnding = ".removed";
constexpr std::string_view kBestName = "best";
constexpr std::string_view kNextBestName = "best.partial";

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

/// Makes a directory vanish from list() before its files go one by one.
void remove_directory(const std::string& path) {
  std::error_code ignored;
  const std::string removed = path + std::string(kRemovedEnding);
  fs::rename(path, removed, ignored);
  fs::remove_all(removed, ignored);
}

/// The text of state.json.
std::string print_state(const TrainingState& state, json files) {
  json root = {{"format", kFormat},
               {"version", kVersion},
               {"training", to_json_object(state)},
               {"files", std::move(files)}};
  io::add_checksum(root);
  return root.dump(2) + "\n";
}

/// A checkpoint of which a part is missing or altered. Another can stand in for it; any other failure to read
/// one has to reach the user, who would lose what is in it.
class DamagedCheckpoint : public base::UserError {
 public:
  using UserError::UserError;
};

template <typename... Args>
void require_whole(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw DamagedCheckpoint(fmt::format(format, std::forward<Args>(args)...));
}

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  require_whole(error != std::errc::no_such_file_or_directory, "{}: {}", path, error.message());
  base::require(!error, "cannot read {}: {}", path, error.message());
  return size;
}

/// state.json, with its format, version and checksum verified.
json read_state(const std::string& path) {
  size_of(path);
  json root = json::parse(io::read_file(path), nullptr, false);
  require_whole(!root.is_discarded(), "{}: this is not JSON", path);
  require_whole(root.is_object() && root.value("format", json()) == kFormat, "{}: this is no checkpoint",
                path);
  const json version = root.value("version", json());
  base::require(!version.is_number() || version <= kVersion,
                "{}: a newer Plenum wrote this, version {}; use that one, or move the checkpoint away", path,
                version.dump());
  require_whole(io::remove_checksum(root), "{}: the checksum is wrong", path);
  return root;
}

const json& find_record(const json& root, std::string_view name, const std::string& path) {
  for (const json& file : io::require_key(root, "files", path)) {
    if (io::require_key(file, "name", path) == name) return file;
  }
  base::fail("{}: the file {} is not listed", path, name);
}

/// Reads all of a file. Earlier versions have one checksum for it.
void verify_file(const std::string& path, const json& record, const std::string& state_path) {
  if (!record.contains("checksums")) {
    require_whole(io::require_key(record, "checksum", state_path) == io::file_checksum(path),
                  "{}: the checksum is wrong", path);
    return;
  }
  const json& expected = record.at("checksums");
  const io::BlockSums sums = io::file_block_sums(path);
  require_whole(expected.is_array() && expected.size() == sums.values().size(),
                "{}: {} checksums are needed: {}", state_path, sums.values().size(), expected.dump());
  for (std::size_t block = 0; block < expected.size(); ++block) {
    require_whole(expected[block] == io::format_block_sum(sums.values()[block]),
                  "{}: the checksum is wrong, within {} bytes from byte {} on", path,
                  io::BlockSums::kBlockBytes, block * io::BlockSums::kBlockBytes);
  }
}

/// state.json of a checkpoint whose files all have the size it says.
json read_sized_state(const std::string& directory) {
  const std::string path = directory + "/" + kStateName;
  json root = read_state(path);
  for (const char* name : kFileNames) {
    const std::string file_path = directory + "/" + name;
    const std::uint64_t size = size_of(file_path);
    const json& expected = io::require_key(find_record(root, name, path), "bytes", path);
    require_whole(expected == size, "{}: the size is wrong: {} bytes, not {}", file_path, size,
                  expected.dump());
  }
  return root;
}

/// Without reading more than state.json.
bool seems_whole(const std::string& directory) {
  try {
    read_sized_state(directory);
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

/// Of the numbers of all processes.
TensorFiles::Tally sum_over(const Processes& processes, const TensorFiles::Tally& own) {
  TensorFiles::Tally sums(own.size());
  const std::string text(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(own.front()));
  for (const std::string& of_one : processes.of_all(text)) {
    base::check(of_one.size() == text.size(), "processes write other files than each other");
    TensorFiles::Tally numbers(own.size());
    std::memcpy(numbers.data(), of_one.data(), of_one.size());
    std::ranges::transform(numbers, sums, sums.begin(), std::plus());
  }
  return sums;
}

}  // namespace

bool is_checkpoint(const std::string& directory) {
  return io::path_exists(directory + "/" + kStateName);
}

std::string checkpoint_identity(const std::string& directory) {
  const std::string path = directory + "/" + kStateName;
  return fmt::format("step {}, {}", describe_checkpoint(directory).state.step, io::file_checksum(path));
}

FoundCheckpoint describe_checkpoint(const std::string& directory) {
  const std::string path = directory + "/" + kStateName;
  const json root = read_sized_state(directory);
  return {.directory = directory,
          .state = parse_training_state(io::require_key(root, "training", path), path),
          .model = model::read_hugging_face_config(directory),
          .refused = {}};
}

FoundCheckpoint verify_checkpoint(const std::string& directory) {
  const std::string path = directory + "/" + kStateName;
  const json root = read_sized_state(directory);
  for (const char* name : kFileNames) {
    verify_file(directory + "/" + name, find_record(root, name, path), path);
  }
  return describe_checkpoint(directory);
}

CheckpointStore::CheckpointStore(std::string run_directory, std::size_t keep)
    : directory_(std::move(run_directory) + "/checkpoints"), keep_(keep) {
  base::require(keep >= 1, "at least one checkpoint must be kept: {}", keep);
}

std::vector<std::string> CheckpointStore::list() const {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  for (const std::string& name : io::names_in(directory_)) {
    if (const std::optional<std::uint64_t> step = step_of(name))
      found.emplace_back(*step, directory_ + "/" + name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> directories;
  for (auto& [step, directory] : found) directories.push_back(std::move(directory));
  return directories;
}

void CheckpointStore::remove_leftovers() const {
  for (const std::string& name : io::names_in(directory_)) {
    const std::string checkpoint = name.substr(0, name.find('.'));
    if (name != kNextBestName && (checkpoint == name || !step_of(checkpoint))) continue;
    if (name == io::replaced_name(checkpoint)) {
      io::restore_replaced(directory_ + "/" + checkpoint);
    } else {
      std::error_code ignored;
      fs::remove_all(directory_ + "/" + name, ignored);
    }
  }
}

std::string CheckpointStore::save(const TrainingState& state, const describe::ModelConfig& model,
                                  const CheckpointTensors& tensors, const Processes& processes,
                                  TellPhase tell) const {
  const std::string directory = directory_ + "/" + directory_name(state.step);
  const TensorFiles files(tensors);
  std::optional<io::AtomicDirectory> output;  // of the first
  json records = json::array();
  do_together(processes, tell, [&] {
    if (!processes.is_first()) return;
    remove_leftovers();
    output.emplace(directory, io::Replace::Yes);
    const io::FileRecord config = output->write(kConfigName, model::print_hugging_face_config(model));
    records.push_back({{"name", config.name}, {"bytes", config.size_bytes}, {"checksum", config.checksum}});
    files.make(output->partial_path());
  });

  const std::string partial = processes.from_first(output ? output->partial_path() : "");
  TensorFiles::Tally tally;
  do_together(processes, tell, [&] {
    const auto headers = processes.is_first() ? TensorFiles::Headers::Yes : TensorFiles::Headers::No;
    tally = files.write(partial, tensors, headers, [&] { tell(JointPhase::Works); });
  });
  tally = sum_over(processes, tally);

  do_together(processes, tell, [&] {
    if (!processes.is_first()) return;
    files.add_records(tally, records);
    output->write(kStateName, print_state(state, std::move(records)));
    output->commit();
    if (state.best_loss && state.best_step == state.step) name_best(state.step);
    remove_old(state);
  });
  return directory;
}

/// For people and other programs: whoever reads it here finds the best step in the state of the newest
/// checkpoint. So it does no harm where links cannot be made.
void CheckpointStore::name_best(std::uint64_t step) const {
  std::error_code ignored;
  const std::string link = fmt::format("{}/{}", directory_, kBestName);
  const std::string next = fmt::format("{}/{}", directory_, kNextBestName);
  fs::remove(next, ignored);
  fs::create_directory_symlink(directory_name(step), next, ignored);
  fs::rename(next, link, ignored);
}

/// Damaged checkpoints do not count, so that they never push out a whole one. Those of later steps, which are
/// there only if they were refused, stay.
void CheckpointStore::remove_old(const TrainingState& newest) const {
  std::vector<std::string> directories = list();
  std::reverse(directories.begin(), directories.end());
  std::size_t num_whole = 0;
  for (const std::string& directory : directories) {
    const std::optional<std::uint64_t> step = step_of(fs::path(directory).filename().string());
    const bool is_best = newest.best_loss && step == newest.best_step;
    if (step > newest.step || (is_best && num_whole == keep_)) continue;
    if (num_whole == keep_) {
      remove_directory(directory);
    } else if (seems_whole(directory)) {
      ++num_whole;
    }
  }
}

std::optional<FoundCheckpoint> CheckpointStore::find_latest(base::Progress& progress) const {
  std::optional<FoundCheckpoint> found;
  std::vector<RefusedCheckpoint> refused;
  std::vector<std::string> left = list();
  while (!found && !left.empty()) {
    const std::string directory = left.back();
    left.pop_back();
    try {
      FoundCheckpoint candidate = verify_checkpoint(directory);
      require_whole(directory_name(candidate.state.step) == fs::path(directory).filename().string(),
                    "{}: the directory's name must be that of its step, {}", directory, candidate.state.step);
      found = std::move(candidate);
    } catch (const base::UserError& error) {
      std::vector<std::string> now = list();
      if (std::find(now.begin(), now.end(), directory) == now.end()) {
        left = std::move(now);  // the run that owns it removed it meanwhile, for a newer one
        refused.clear();
        continue;
      }
      if (dynamic_cast<const DamagedCheckpoint*>(&error) == nullptr) throw;
      refused.push_back({.directory = directory, .reason = error.what()});
    }
  }
  std::string reasons;
  for (const RefusedCheckpoint& checkpoint : refused) {
    progress.note(fmt::format("checkpoint refused: {}", checkpoint.reason));
    reasons += fmt::format("; {}", checkpoint.reason);
  }
  base::require(found || refused.empty(), "no checkpoint can be used; move {} away to begin anew{}",
                directory_, reasons);
  if (found) found->refused = std::move(refused);
  return found;
}

std::optional<FoundCheckpoint> CheckpointStore::find(const CheckpointChoice& choice,
                                                     base::Progress& progress) const {
  if (choice.kind == CheckpointChoice::Kind::Step) {
    const std::string directory = directory_ + "/" + directory_name(choice.step);
    const std::vector<std::string> all = list();
    std::vector<std::string> steps;
    for (const std::string& other : all)
      steps.push_back(fmt::format("{}", *step_of(fs::path(other).filename().string())));
    base::require(std::ranges::find(all, directory) != all.end(),
                  "{} has no checkpoint of step {}; there are: {}", directory_, choice.step,
                  steps.empty() ? "none" : fmt::format("{}", fmt::join(steps, ", ")));
    return verify_checkpoint(directory);
  }
  std::optional<FoundCheckpoint> latest = find_latest(progress);
  const bool is_meant = !latest || choice.kind == CheckpointChoice::Kind::Last || !latest->state.best_loss ||
                        latest->state.best_step == latest->state.step;
  if (is_meant) return latest;
  try {
    return verify_checkpoint(directory_ + "/" + directory_name(latest->state.best_step));
  } catch (const DamagedCheckpoint& error) {
    progress.note(fmt::format("the best checkpoint, of step {}, cannot be used ({}); taking the last",
                              latest->state.best_step, error.what()));
    return latest;
  }
}

CheckpointChoice parse_checkpoint_choice(std::string_view text, std::string_view what) {
  if (text == "best") return {.kind = CheckpointChoice::Kind::Best};
  if (text == "last") return {.kind = CheckpointChoice::Kind::Last};
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  base::require(is_number, "{} must be best, last or the number of a step: '{}'", what, text);
  return {.kind = CheckpointChoice::Kind::Step,
          .step = static_cast<std::uint64_t>(base::parse_integer(text, what))};
}

std::string to_string(const CheckpointChoice& choice) {
  switch (choice.kind) {
    case CheckpointChoice::Kind::Best:
      return "best";
    case CheckpointChoice::Kind::Last:
      return "last";
    case CheckpointChoice::Kind::Step:
      return fmt::format("{}", choice.step);
  }
  return {};
}

void load(const FoundCheckpoint& checkpoint, const CheckpointTensors& tensors) {
  read_tensors(checkpoint.directory, tensors);
}

}  // namespace plenum::train
