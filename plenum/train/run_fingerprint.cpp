#include "plenum/train/run_fingerprint.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "plenum/io/checksum.h"
#include "plenum/train/checkpoint.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/starting_model.h"

namespace plenum::train {
namespace {

/// A path may have another name on another machine; what lies there is compared.
constexpr std::array<std::string_view, 12> kOwn = {
    "run in [run]",        "threads in [run]",   "data in [data]", "packing-plan in [data]",
    "init in [model]",     "interface in [run]", "json in [run]",  "quiet in [run]",
    "hang-limit in [run]", "train in [task]",    "dev in [task]",  "test in [task]"};

}  // namespace

control::Fingerprint fingerprint_of(const RunOptions& settled, const TrainingData& data) {
  control::Fingerprint fingerprint;
  for (const auto& [name, value] : option_texts(settled)) {
    if (std::ranges::find(kOwn, name) == kOwn.end()) fingerprint.emplace_back(name, value);
  }
  fingerprint.emplace_back("the dataset", data.fingerprint());
  fingerprint.emplace_back("the number of its shards", std::to_string(data.shards_here().size()));
  if (!settled.data.packing_plan.empty())
    fingerprint.emplace_back("the packing plan", io::file_checksum(settled.data.packing_plan));
  // A run that has a checkpoint goes on without the model that it began with, which may be gone.
  if (CheckpointStore(settled.run.directory, 1).list().empty())
    fingerprint.emplace_back("the model to begin with", source_identity(settled.model));
  fingerprint.emplace_back("the program", io::file_checksum("/proc/self/exe"));
  return fingerprint;
}

}  // namespace plenum::train
