#include "plenum/data/batches/packing_plan_file.h"

#include <algorithm>
#include <functional>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/io/json_file.h"

namespace plenum::data {
namespace {

/// Throws UserError unless `value` is a whole number from 1 to `greatest`. `what` comes after `place`.
std::uint64_t positive_number(const nlohmann::json& value, std::uint64_t greatest, const std::string& place,
                              std::string_view what) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number >= 1 && number <= greatest) return number;
  }
  base::fail("{}: {} must be a whole number from 1 to {}", place, what, greatest);
}

packing::PackPattern read_pattern(const nlohmann::json& value, const packing::PackingPlan& plan,
                                  const std::string& place) {
  packing::PackPattern pattern;
  pattern.count =
      positive_number(io::require_key(value, "count", place), packing::kMostTokens, place, "the count");
  const nlohmann::json& lengths = io::require_key(value, "lengths", place);
  base::require(lengths.is_array() && !lengths.empty(), "{}: \"lengths\" must be a list of lengths", place);
  std::int64_t tokens = 0;
  for (const nlohmann::json& length : lengths) {
    pattern.lengths.push_back(static_cast<std::int32_t>(
        positive_number(length, static_cast<std::uint64_t>(plan.capacity), place, "a length")));
    tokens += pattern.lengths.back();
  }
  base::require(tokens <= plan.capacity, "{}: {} tokens are over the capacity of {}", place, tokens,
                plan.capacity);
  base::require(std::cmp_less_equal(pattern.lengths.size(), plan.depth),
                "{}: {} sequences are over the depth of {}", place, pattern.lengths.size(), plan.depth);
  std::sort(pattern.lengths.begin(), pattern.lengths.end(), std::greater<>());
  return pattern;
}

}  // namespace

std::string print_packing_plan(const packing::PackingPlan& plan) {
  std::string text =
      fmt::format("{{\"capacity\": {}, \"depth\": {}, \"patterns\": [", plan.capacity, plan.depth);
  std::string_view separator = "\n";
  for (const packing::PackPattern& pattern : plan.patterns) {
    text += fmt::format("{}{{\"lengths\": [{}], \"count\": {}}}", separator, fmt::join(pattern.lengths, ", "),
                        pattern.count);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

packing::PackingPlan read_packing_plan(const std::string& path) {
  const nlohmann::json root = io::read_json_file(path);
  const auto greatest = static_cast<std::uint64_t>(packing::kGreatestCapacity);
  packing::PackingPlan plan;
  plan.capacity = static_cast<std::int64_t>(
      positive_number(io::require_key(root, "capacity", path), greatest, path, "the capacity"));
  plan.depth = static_cast<std::int64_t>(
      positive_number(io::require_key(root, "depth", path), greatest, path, "the depth"));
  const nlohmann::json& patterns = io::require_key(root, "patterns", path);
  base::require(patterns.is_array() && !patterns.empty(), "{}: \"patterns\" must be a list of patterns",
                path);
  for (const nlohmann::json& pattern : patterns) {
    plan.patterns.push_back(
        read_pattern(pattern, plan, fmt::format("{}: pattern {}", path, plan.patterns.size() + 1)));
  }
  return plan;
}

}  // namespace plenum::data
