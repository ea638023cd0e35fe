#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "plenum/base/check.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/io/safetensors.h"

namespace plenum::test {

/// The tensors of a golden file.
class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& name)
      : file_(std::string(PLENUM_SOURCE_DIR) + "/tests/golden/" + name) {}

  template <typename Element>
  std::vector<Element> read(const std::string& name) const {
    const std::span<const std::byte> bytes = file_.bytes(at(name));
    std::vector<Element> values(bytes.size() / sizeof(Element));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  /// Of floats, as doubles.
  std::vector<double> expected(const std::string& name) const {
    const std::vector<float> values = read<float>(name);
    return {values.begin(), values.end()};
  }

  /// Overwrites a parameter's place in a flat buffer.
  void read_parameter(const std::string& name, const describe::Parameter& parameter,
                      std::span<float> flat) const {
    file_.read(at(name), flat.subspan(static_cast<std::size_t>(parameter.begin),
                                      static_cast<std::size_t>(parameter.num_elements())));
  }

 private:
  const io::SafetensorsTensor& at(const std::string& name) const {
    const io::SafetensorsTensor* tensor = file_.find(name);
    base::check(tensor != nullptr, "the golden file has no {}", name);
    return *tensor;
  }

  io::SafetensorsFile file_;
};

}  // namespace plenum::test
