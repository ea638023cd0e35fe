#include "plenum/report/run_record.h"

#include <algorithm>

namespace plenum::report {
namespace {

const nlohmann::json* value_at(const nlohmann::json& value, const std::string& pointer) {
  const nlohmann::json::json_pointer place(pointer);
  return value.contains(place) ? &value.at(place) : nullptr;
}

}  // namespace

std::optional<double> number_in(const nlohmann::json& value, const std::string& pointer) {
  const nlohmann::json* const found = value_at(value, pointer);
  return found != nullptr && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string text_in(const nlohmann::json& value, const std::string& pointer) {
  const nlohmann::json* const found = value_at(value, pointer);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

nlohmann::json list_in(const nlohmann::json& value, const std::string& pointer) {
  const nlohmann::json* const found = value_at(value, pointer);
  return found != nullptr && found->is_array() ? *found : nlohmann::json::array();
}

std::vector<double> numbers_in(const nlohmann::json& value, const std::string& pointer) {
  std::vector<double> numbers;
  for (const nlohmann::json& number : list_in(value, pointer))
    if (number.is_number()) numbers.push_back(number.get<double>());
  return numbers;
}

std::optional<double> EvaluationRecord::value(const std::string& name) const {
  const auto found = std::ranges::find(values, name, &std::pair<std::string, double>::first);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

const RunEvent* RunRecord::beginning() const {
  const auto found = std::find_if(events.rbegin(), events.rend(),
                                  [](const RunEvent& event) { return event.begins_process(); });
  return found == events.rend() ? nullptr : &*found;
}

std::optional<double> RunRecord::number(const std::string& pointer) const {
  const RunEvent* const begin = beginning();
  return begin == nullptr ? std::nullopt : number_in(begin->details, pointer);
}

std::string RunRecord::text(const std::string& pointer) const {
  const RunEvent* const begin = beginning();
  return begin == nullptr ? "" : text_in(begin->details, pointer);
}

bool RunRecord::is_finished() const {
  if (is_locked) return false;
  if (!events.empty() && events.back().kind == "no better") return true;
  return steps.size() > 0 && steps.num_steps > 0 && steps.step.back() >= steps.num_steps;
}

}  // namespace plenum::report
