#include "plenum/data/tasks/label_names.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace plenum::data {
namespace {

/// The number that a name writes, as numbers are usually written.
std::optional<std::int64_t> whole_number(std::string_view name) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size() || std::to_string(value) != name)
    return std::nullopt;
  return value;
}

}  // namespace

LabelNames::LabelNames(const std::vector<std::string>& names) : is_known_(true), names_(names) {
  for (std::size_t i = 0; i < names.size(); ++i) numbers_.emplace(names[i], static_cast<std::int32_t>(i));
}

std::optional<std::int32_t> LabelNames::number_of(std::string_view name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  if (is_known_) return std::nullopt;
  const auto number = static_cast<std::int32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(name, number);
  return number;
}

std::vector<std::int32_t> LabelNames::number_in_order() {
  std::vector<std::int32_t> order(names_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto name_of = [&](std::int32_t number) -> const std::string& {
    return names_[static_cast<std::size_t>(number)];
  };
  const bool are_numbers =
      std::ranges::all_of(names_, [](const std::string& name) { return whole_number(name).has_value(); });
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (are_numbers) return *whole_number(name_of(a)) < *whole_number(name_of(b));
    return name_of(a) < name_of(b);
  });
  std::vector<std::int32_t> final_ids(order.size());
  std::vector<std::string> names;
  for (const std::int32_t number : order) {
    final_ids[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(names.size());
    names.push_back(name_of(number));
  }
  *this = LabelNames(names);
  return final_ids;
}

}  // namespace plenum::data
