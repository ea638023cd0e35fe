#include "plenum/model/named_tensors.h"

#include <algorithm>
#include <utility>

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
                                           std::span<const float> values_N) {
  check_size(table, values_N.size());
  std::vector<io::NamedFloats> tensors;
  for (const describe::Parameter& parameter : table.parameters()) {
    const std::span<const std::int64_t> sizes = parameter.shape.sizes();
    tensors.push_back({.name = parameter.name,
                       .sizes = {sizes.begin(), sizes.end()},
                       .values = values_N.subspan(static_cast<std::size_t>(parameter.begin),
                                                  static_cast<std::size_t>(parameter.num_elements()))});
  }
  return tensors;
}

std::vector<io::FloatsShape> named_shapes(const describe::ParameterTable& table, std::string_view prefix,
                                          IsNamed is_named) {
  std::vector<io::FloatsShape> shapes;
  for (const describe::Parameter& parameter : table.parameters()) {
    if (!is_named(parameter)) continue;
    const std::span<const std::int64_t> sizes = parameter.shape.sizes();
    shapes.push_back({fmt::format("{}{}", prefix, parameter.name), {sizes.begin(), sizes.end()}});
  }
  return shapes;
}

void write_named_tensors(const io::SafetensorsLayout& layout, const describe::ParameterTable& table,
                         const FlatPieces& values_N, const tensor::HostWindow* window,
                         std::string_view prefix,
                         base::FunctionRef<void(std::uint64_t, std::span<const float>)> write,
                         IsNamed is_named) {
  std::vector<std::pair<std::uint64_t, const describe::Parameter*>> placed;
  for (const describe::Parameter& parameter : table.parameters()) {
    if (!is_named(parameter)) continue;
    placed.emplace_back(layout.begin_of(fmt::format("{}{}", prefix, parameter.name)), &parameter);
  }
  std::ranges::sort(placed);
  for (const auto& [begin, parameter] : placed) {
    const auto write_part = [&, begin = begin](std::size_t first, std::span<float> part) {
      std::uint64_t offset = begin + first * sizeof(float);
      const auto take = [&](std::span<const float> values) {
        write(offset, values);
        offset += values.size_bytes();
      };
      window == nullptr ? take(part) : window->read(part, take);
    };
    values_N.for_each_in(parameter->begin, parameter->end(), write_part);
  }
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
                        const FlatPieces& values_N, const tensor::HostWindow* window, std::string_view prefix,
                        IsNamed is_named) {
  for (const describe::Parameter& parameter : table.parameters()) {
    if (!is_named(parameter)) continue;
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
