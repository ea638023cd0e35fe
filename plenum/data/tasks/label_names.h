#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::data {

/// The names of classes while examples are read: known, or gathered as they come and numbered at the end.
class LabelNames {
 public:
  /// To be gathered.
  LabelNames() = default;
  /// Known, by their ids.
  explicit LabelNames(const std::vector<std::string>& names);

  /// The number of a name; nothing if names are known and it is none of them. Of gathered names it is one
  /// that number_in_order() changes.
  std::optional<std::int32_t> number_of(std::string_view name);
  bool has(std::string_view name) const { return numbers_.find(name) != numbers_.end(); }

  /// Gives gathered names their final ids, in the order of numbers if all are whole numbers, else of bytes.
  /// Returns those by the numbers that they had.
  std::vector<std::int32_t> number_in_order();
  /// By id; of gathered ones after number_in_order().
  const std::vector<std::string>& names() const { return names_; }

 private:
  bool is_known_ = false;
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

}  // namespace plenum::data
