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

io::NamedFloats named(const describe::Parameter& parameter, std::string_view prefix) {
  const std::span<const std::int64_t> sizes = parameter.shape.sizes();
  return {.name = fmt::format("{}{}", prefix, parameter.name),
          .sizes = {sizes.begin(), sizes.end()},
          .values = {}};
}

}  // namespace

std::vector<io::NamedFloats> named_tensors(const describe::ParameterTable& table,
                                           std::span<const float> values_N, std::string_view prefix) {
  check_size(table, values_N.size());
  std::vector<io::NamedFloats> tensors;
  for (const describe::Parameter& parameter : table.parameters()) {
    io::NamedFloats& tensor = tensors.emplace_back(named(parameter, prefix));
    tensor.values = values_N.subspan(static_cast<std::size_t>(parameter.begin),
                                     static_cast<std::size_t>(parameter.num_elements()));
  }
  return tensors;
}

std::vector<io::NamedFloats> named_tensors(const describe::ParameterTable& table, const FlatPieces& values_N,
                                           std::string_view prefix) {
  std::vector<io::NamedFloats> tensors;
  for (const describe::Parameter& parameter : table.parameters()) {
    io::NamedFloats& tensor = tensors.emplace_back(named(parameter, prefix));
    values_N.for_each_in(parameter.begin, parameter.end(), [&](std::size_t first, std::span<float> part) {
      if (first == 0) {
        tensor.values = part;
      } else {
        tensor.rest.emplace_back(part);
      }
    });
    const std::uint64_t num_bytes =
        tensor::size_of(tensor::DType::Float32) * static_cast<std::uint64_t>(parameter.num_elements());
    base::check(tensor.num_bytes() == num_bytes, "pieces must hold all of {}: {} of {} bytes", tensor.name,
                tensor.num_bytes(), num_bytes);
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
                        const FlatPieces& values_N, const tensor::HostWindow* window,
                        std::string_view prefix) {
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::string name = fmt::format("{}{}", prefix, parameter.name);
    const io::SafetensorsTensor* tensor = file.find(name);
    base::require(tensor != nullptr, "{}: there is no tensor {}", file.path(), name);
    require_shape(file, *tensor, parameter);
    values_N.for_each_in(parameter.begin, parameter.end(), [&](std::size_t first, std::span<float> part) {
      const auto read = [&](std::size_t first_of_part, std::span<float> values) {
        file.read(*tensor, first + first_of_part, values);
      };
      window == nullptr ? read(0, part) : window->write(part, read);
    });
  }
}

}  // namespace plenum::model
