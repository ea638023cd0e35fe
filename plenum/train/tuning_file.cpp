#include "plenum/train/tuning_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plenum/base/check.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/io/json_file.h"

namespace plenum::train {
namespace {

using kernels::MatmulChoices;
using nlohmann::json;

constexpr std::string_view kTuningFormat = "plenum-tuning";
constexpr int kTuningVersion = 1;
constexpr const char* kMeasuredWith = "measured_with";
constexpr const char* kProducts = "products";

/// The texts by name of an object.
std::map<std::string, std::string> texts_of(const json& object, const std::string& source) {
  base::require(object.is_object(), "{}: not an object: {}", source, object.dump());
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : object.items()) {
    base::require(value.is_string(), "{}: {} must be a text: {}", source, key, value.dump());
    texts[key] = value.get<std::string>();
  }
  return texts;
}

bool is_tuned(const TunedStream& stream) {
  return stream.stream.device() == tensor::Device::Cuda;
}

}  // namespace

std::string print_tuning(const Tuning& tuning) {
  json root = {{"format", kTuningFormat}, {"version", kTuningVersion}, {"streams", json::object()}};
  for (const auto& [name, choices] : tuning) {
    root["streams"][name] = {{kMeasuredWith, choices.measured_with}, {kProducts, choices.algorithms}};
  }
  io::add_checksum(root);
  return root.dump(2) + "\n";
}

Tuning parse_tuning(std::string_view text, const std::string& source) {
  json root = json::parse(text, nullptr, false);
  base::require(root.is_object() && root.value("format", json()) == kTuningFormat,
                "{}: this does not hold the tuning of a run; move it away to measure anew", source);
  const json version = root.value("version", json());
  base::require(!version.is_number() || version <= kTuningVersion,
                "{}: a newer Plenum wrote this, version {}; use that one, or move the file away to measure "
                "anew",
                source, version.dump());
  base::require(io::remove_checksum(root), "{}: the checksum is wrong; move the file away to measure anew",
                source);
  Tuning tuning;
  for (const auto& [name, choices] : io::require_key(root, "streams", source).items()) {
    const json& measured_with = io::require_key(choices, kMeasuredWith, source);
    base::require(measured_with.is_string(), "{}: {} must be a text: {}", source, kMeasuredWith,
                  measured_with.dump());
    tuning[name] = {.measured_with = measured_with.get<std::string>(),
                    .algorithms = texts_of(io::require_key(choices, kProducts, source), source)};
  }
  return tuning;
}

void TuningFile::restore(std::span<const TunedStream> streams, const Note& note) {
  for (const TunedStream& one : streams) {
    if (!is_tuned(one)) continue;
    if (written_.empty() && io::path_exists(path_)) written_ = parse_tuning(io::read_file(path_), path_);
    const auto choices = written_.find(one.name);
    if (choices == written_.end() || kernels::use_matmul_choices(one.stream, choices->second)) continue;
    note(fmt::format(
        "{}: measured with {}, which this is not; the algorithms of {} are chosen anew, and results "
        "agree to rounding",
        path_, choices->second.measured_with, one.name));
  }
}

void TuningFile::save(std::span<const TunedStream> streams) {
  Tuning tuning;
  for (const TunedStream& one : streams) {
    MatmulChoices choices = kernels::matmul_choices(one.stream);
    if (!choices.algorithms.empty()) tuning[one.name] = std::move(choices);
  }
  if (tuning.empty() || tuning == written_) return;
  io::write_file(path_, print_tuning(tuning));
  written_ = std::move(tuning);
}

}  // namespace plenum::train
