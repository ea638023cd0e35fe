#include "plenum/model/named_tensors.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::model {
namespace {

void check_size(const describe::ParameterTable& table, std::size_t size) {
  base::check(std::cmp_equal(size, table.num_elements()), "a flat buffer of {} elements for a table of {}",
              size, table.num_elements());
}

void require_shape(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                   const describe::Parameter& parameter) {
  base::require(std::ranges::equal(tensor.sizes, parameter.shape.sizes()),
                "{}: tensor {} has shape {}, the model needs {}", file.path(), tensor.name,
                io::format_sizes(tensor.sizes), tensor::to_string(parameter.shape));
}

}  // namespace

std::vector<io::NamedFloats> named_tensors(const describe::ParameterTable& table,
                                           std::span<const float> values_N, std::string_view prefix) {
  check_size(table, values_N.size());
  std::vector<io::NamedFloats> tensors;
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::span<const std::int64_t> sizes = parameter.shape.sizes();
    tensors.push_back({.name = fmt::format("{}{}", prefix, parameter.name),
                       .sizes = {sizes.begin(), sizes.end()},
                       .values = values_N.subspan(static_cast<std::size_t>(parameter.begin),
                                                  static_cast<std::size_t>(parameter.num_elements()))});
  }
  return tensors;
}

std::span<float> elements_of(const describe::Parameter& parameter, std::span<float> values_N) {
  return values_N.subspan(static_cast<std::size_t>(parameter.begin),
                          static_cast<std::size_t>(parameter.num_elements()));
}

void read_parameter(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                    const describe::Parameter& parameter, std::span<float> values_N) {
  require_shape(file, tensor, parameter);
  file.read(tensor, elements_of(parameter, values_N));
}

void read_named_tensors(const io::SafetensorsFile& file, const describe::ParameterTable& table,
                        std::span<float> values_N, const tensor::HostWindow* window,
                        std::string_view prefix) {
  check_size(table, values_N.size());
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::string name = fmt::format("{}{}", prefix, parameter.name);
    const io::SafetensorsTensor* tensor = file.find(name);
    base::require(tensor != nullptr, "{}: there is no tensor {}", file.path(), name);
    if (window == nullptr) {
      read_parameter(file, *tensor, parameter, values_N);
      continue;
    }
    require_shape(file, *tensor, parameter);
    window->write(elements_of(parameter, values_N),
                  [&](std::size_t first, std::span<float> piece) { file.read(*tensor, first, piece); });
  }
}

}  // namespace plenum::model
