#include "plenum/model/hugging_face_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/base/function_ref.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/io/json_file.h"
#include "plenum/io/safetensors.h"
#include "plenum/model/hugging_face_config.h"
#include "plenum/model/hugging_face_task.h"
#include "plenum/model/named_tensors.h"

namespace plenum::model {
namespace {

constexpr const char* kWeightsName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kConfigName = "config.json";
constexpr std::string_view kTokenizerConfigName = "tokenizer_config.json";
constexpr std::array<std::string_view, 3> kTokenizerNames = {"vocab.txt", "tokenizer.json",
                                                             kTokenizerConfigName};

/// All that an export writes.
constexpr std::array<std::string_view, 5> kDirectoryNames = {kWeightsName, kConfigName, kTokenizerNames[0],
                                                             kTokenizerNames[1], kTokenizerNames[2]};

/// A tensor in one of the files of a directory.
struct StoredTensor {
  const io::SafetensorsFile* file;
  const io::SafetensorsTensor* tensor;
};

bool is_exact_copy(const StoredTensor& a, const StoredTensor& b) {
  return a.tensor->type.name == b.tensor->type.name && a.tensor->sizes == b.tensor->sizes &&
         std::ranges::equal(a.file->bytes(*a.tensor), b.file->bytes(*b.tensor));
}

/// The name that the table has for a tensor of a file; none for buffers, which are no parameters.
std::optional<std::string> table_name(std::string_view name, const describe::FileNames& known) {
  const auto ends_name = [&](const std::string& ending) { return name.ends_with(ending); };
  const auto begins_name = [&](const std::string& beginning) { return name.starts_with(beginning); };
  if (std::ranges::any_of(known.buffer_endings, ends_name)) return {};
  std::string result(name);
  if (std::ranges::any_of(known.bare_beginnings, begins_name)) result.insert(0, known.prefix);
  for (const auto& [old, ending] : known.old_endings) {
    if (result.ends_with(old)) result.replace(result.size() - old.size(), old.size(), ending);
  }
  return result;
}

/// The weights of a directory, by the names of the table.
class StoredWeights {
 public:
  StoredWeights(const std::string& directory, const describe::FileNames& names) : names_(names) {
    if (io::path_exists(directory + "/" + kWeightsName)) {
      const io::SafetensorsFile& file = files_.emplace_back(directory + "/" + kWeightsName);
      for (const io::SafetensorsTensor& tensor : file.tensors()) add({&file, &tensor});
    } else if (io::path_exists(directory + "/" + kIndexName)) {
      read_index(directory);
    } else {
      refuse(directory);
    }
    for (const auto& [copy, original] : names.copies) merge(copy, original);
  }

  /// Null if it is not there.
  const StoredTensor* find(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }

  /// Takes a tensor out; none if it is not there.
  std::optional<StoredTensor> take(std::string_view name) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return {};
    const StoredTensor tensor = found->second;
    tensors_.erase(found);
    return tensor;
  }

  /// The names, as the files have them, of what was not taken. Throws UserError for what is more than a head
  /// that the model does without.
  std::vector<std::string> spare() const {
    std::vector<std::string> names;
    for (const auto& [name, stored] : tensors_) {
      const auto begins_name = [&name = name](const std::string& beginning) {
        return name.starts_with(beginning);
      };
      base::require(std::ranges::any_of(names_.spare_beginnings, begins_name),
                    "{}: tensor {} has no place in the model that {} describes, and without it the model "
                    "would be another one; put the {} of these weights beside them",
                    stored.file->path(), stored.tensor->name, kConfigName, kConfigName);
      names.push_back(stored.tensor->name);
    }
    return names;
  }

 private:
  [[noreturn]] static void refuse(const std::string& directory) {
    for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
      base::require(
          !io::path_exists(directory + "/" + name),
          "only {} is there, which Plenum does not read; convert it to safetensors: load and save it with "
          "transformers (save_pretrained): {}",
          name, directory);
    }
    base::fail("there is no {} and no {}: {}", kWeightsName, kIndexName, directory);
  }

  void read_index(const std::string& directory) {
    const std::string path = directory + "/" + kIndexName;
    const nlohmann::json root = io::read_json_file(path);
    const nlohmann::json& places = io::require_key(root, "weight_map", path);
    base::require(places.is_object(), "{}: weight_map must give each tensor a file", path);
    std::map<std::string, const io::SafetensorsFile*> shards;
    for (const auto& [name, place] : places.items()) {
      const std::string shard = place.is_string() ? place.get<std::string>() : "";
      base::require(shard.ends_with(".safetensors") && shard.find('/') == std::string::npos,
                    "{}: tensor {} must lie in a safetensors file beside the index: {}", path, name,
                    place.dump());
      const io::SafetensorsFile*& file = shards[shard];
      if (file == nullptr) file = &files_.emplace_back(directory + "/" + shard);
      const io::SafetensorsTensor* tensor = file->find(name);
      base::require(tensor != nullptr, "{}: there is no tensor {}, which {} says to be here", file->path(),
                    name, kIndexName);
      add({file, tensor});
    }
  }

  void add(const StoredTensor& stored) {
    const std::optional<std::string> name = table_name(stored.tensor->name, names_);
    if (!name) return;
    const auto [place, is_new] = tensors_.emplace(*name, stored);
    base::require(is_new, "{}: tensors {} and {} are the same parameter", stored.file->path(),
                  place->second.tensor->name, stored.tensor->name);
  }

  /// Leaves one of two tied tensors, under the name of the original.
  void merge(std::string_view copy, std::string_view original) {
    const std::optional<StoredTensor> stored = take(copy);
    if (!stored) return;
    const auto [place, is_alone] = tensors_.emplace(original, *stored);
    base::require(is_alone || is_exact_copy(*stored, place->second),
                  "{}: tensor {} differs from {}; only tied ones are supported", stored->file->path(), copy,
                  original);
  }

  const describe::FileNames& names_;
  std::list<io::SafetensorsFile> files_;  // stay where they are
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

/// Before shapes are compared, because it is the usual reason why they differ.
void require_same_vocabulary(const StoredTensor& embedding, const describe::Parameter& parameter) {
  const std::vector<std::int64_t>& sizes = embedding.tensor->sizes;
  base::require(
      sizes.size() != 2 || sizes[0] == parameter.shape[0],
      "{}: the weights have another vocabulary than asked for; tokenise with theirs: {} tokens, not {}",
      embedding.file->path(), sizes.empty() ? 0 : sizes[0], parameter.shape[0]);
}

void require_finite(const StoredTensor& stored, std::span<const float> elements) {
  const auto found = std::ranges::find_if_not(elements, [](float value) { return std::isfinite(value); });
  if (found == elements.end()) return;
  base::fail(
      "{}: tensor {} has elements that are not finite, so the model can predict nothing; take an earlier "
      "checkpoint or another copy: element {} is {}",
      stored.file->path(), stored.tensor->name, found - elements.begin(), *found);
}

void copy_tokenizer(const std::string& source, io::AtomicDirectory& directory) {
  bool has_vocabulary = false;
  for (const std::string_view name : kTokenizerNames) {
    const std::string path = fmt::format("{}/{}", source, name);
    if (!io::path_exists(path)) continue;
    directory.write(std::string(name), io::read_file(path));
    has_vocabulary = has_vocabulary || name != kTokenizerConfigName;
  }
  base::require(has_vocabulary, "there is no tokenizer (vocab.txt or tokenizer.json): {}", source);
}

}  // namespace

namespace {

/// Whether the directory's values of a parameter are to be read.
using IsRead = base::FunctionRef<bool(const describe::Parameter&)>;

ImportReport read_weights(const std::string& directory, const describe::ParameterTable& table,
                          std::span<float> weights_N, IsRead is_read) {
  StoredWeights stored(directory, table.model().file_names);
  const std::string& words = table.model().embedding.words.weight;
  if (const StoredTensor* embedding = stored.find(words))
    require_same_vocabulary(*embedding, table.at(words));
  ImportReport report;
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::optional<StoredTensor> found =
        is_read(parameter) ? stored.take(parameter.name) : std::optional<StoredTensor>();
    if (!found) {
      base::require(parameter.part == describe::ModelPart::Head, "{}: there is no tensor {}", directory,
                    parameter.name);
      report.new_tensors.push_back(parameter.name);
      continue;
    }
    read_parameter(*found->file, *found->tensor, parameter, weights_N);
    require_finite(*found, elements_of(parameter, weights_N));
  }
  report.unused_tensors = stored.spare();
  return report;
}

}  // namespace

ImportReport read_hugging_face_weights(const std::string& directory, const describe::ParameterTable& table,
                                       std::span<float> weights_N) {
  return read_weights(directory, table, weights_N, kEveryParameter);
}

ImportReport read_weights_for_task(const std::string& directory, const describe::Task& task,
                                   const describe::ParameterTable& table, std::span<float> weights_N) {
  const std::string other = difference_of_heads(read_hugging_face_config(directory).task, task);
  const describe::LinearMap& output = table.model().heads.front().output;
  ImportReport report = read_weights(directory, table, weights_N, [&](const describe::Parameter& parameter) {
    return other.empty() || (parameter.name != output.weight && parameter.name != output.bias);
  });
  const auto is_of_output = [&](const std::string& name) {
    return name == output.weight || name == output.bias;
  };
  if (std::ranges::any_of(report.unused_tensors, is_of_output)) report.other_head = other;
  return report;
}

void write_hugging_face_directory(const std::string& directory, const HuggingFaceModel& model,
                                  io::Replace replace, const WrittenCheck& check) {
  io::require_replaceable(directory, replace, kDirectoryNames);
  io::AtomicDirectory output(directory, replace);
  copy_tokenizer(model.tokenizer_directory, output);
  output.write(kConfigName, print_hugging_face_config(model.config));
  output.write(kWeightsName, [&](io::AtomicDirectory::Sink sink) {
    io::write_safetensors(named_tensors(model.table, model.weights_N), sink);
  });
  if (check) check(output.partial_path());
  output.commit();
}

}  // namespace plenum::model
