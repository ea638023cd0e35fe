#include "plenum/data/dataset_histogram.h"

#include <filesystem>

#include "plenum/base/check.h"
#include "plenum/io/json_file.h"
#include "plenum/packing/plan.h"

namespace plenum::data {

DatasetHistogram read_dataset_histogram(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "dataset.json").string();
  base::require(std::filesystem::exists(path), "{} is not a dataset: it has no dataset.json", directory);
  const nlohmann::json root = io::read_json_file(path);
  const nlohmann::json& max_length = io::require_key(root, "max_length", path);
  base::require(max_length.is_number_unsigned(), "{}: \"max_length\" must be a whole number", path);
  const nlohmann::json& counts = io::require_key(root, "histogram", path);
  base::require(counts.is_array(), "{}: \"histogram\" must be a list of counts", path);

  DatasetHistogram dataset{.histogram = {}, .max_length = max_length.get<std::int64_t>()};
  for (const nlohmann::json& count : counts) {
    base::require(count.is_number_unsigned(), "{}: \"histogram\" must be a list of counts", path);
    dataset.histogram.counts.push_back(count.get<std::uint64_t>());
  }
  packing::check_problem(
      {.histogram = dataset.histogram, .capacity = dataset.max_length, .depth = dataset.max_length});
  return dataset;
}

}  // namespace plenum::data
