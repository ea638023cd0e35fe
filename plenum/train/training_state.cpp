#include "plenum/train/training_state.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "plenum/base/check.h"
#include "plenum/io/json_file.h"

namespace plenum::train {
namespace {

/// Which states of earlier versions lack.
constexpr std::array<std::string_view, 2> kLaterCounts = {"worse_in_a_row", "evaluated_step"};

/// The counts by name, of a state or of one to be filled.
template <typename State, typename Visit>
void visit_counts(State& state, Visit visit) {
  visit("step", state.step);
  visit("num_updates", state.num_updates);
  visit("tokens", state.tokens);
  visit("sequences", state.sequences);
  visit("skipped_steps", state.skipped_steps);
  visit("skipped_in_a_row", state.skipped_in_a_row);
  visit("best_step", state.best_step);
  visit("worse_in_a_row", state.worse_in_a_row);
  visit("evaluated_step", state.evaluated_step);
  visit("seed", state.seed);
}

data::TaskScore parse_score(const nlohmann::json& object, const std::string& source) {
  const bool is_one = object.is_object() && object.size() == 1 && object.begin()->is_number();
  base::require(is_one, "{}: best_score must be an object of one number: {}", source, object.dump());
  return {.name = object.begin().key(), .value = object.begin()->get<double>()};
}

std::string parse_text(const nlohmann::json& object, const char* key, const std::string& source) {
  const nlohmann::json& value = io::require_key(object, key, source);
  base::require(value.is_string(), "{}: {} must be a text: {}", source, key, value.dump());
  return value.get<std::string>();
}

}  // namespace

nlohmann::json to_json_object(const TrainingState& state) {
  nlohmann::json object = {
      {"fingerprint", state.fingerprint},
      {"best_loss", state.best_loss ? nlohmann::json(*state.best_loss) : nlohmann::json()}};
  visit_counts(state, [&](const char* key, std::uint64_t count) { object[key] = count; });
  if (state.best_score) object["best_score"] = {{state.best_score->name, state.best_score->value}};
  if (state.attention_cost != 1) object["attention_cost"] = state.attention_cost;
  if (!state.packing_plan.empty()) object["packing_plan"] = state.packing_plan;
  if (!state.options.empty()) object["options"] = state.options;
  return object;
}

TrainingState parse_training_state(const nlohmann::json& object, const std::string& source) {
  TrainingState state;
  visit_counts(state, [&](const char* key, std::uint64_t& count) {
    if (std::ranges::find(kLaterCounts, key) != kLaterCounts.end() && !object.contains(key)) return;
    const nlohmann::json& value = io::require_key(object, key, source);
    base::require(value.is_number_unsigned(), "{}: {} must be a count: {}", source, key, value.dump());
    count = value.get<std::uint64_t>();
  });
  if (!object.contains("evaluated_step")) state.evaluated_step = state.step;
  const nlohmann::json& best_loss = io::require_key(object, "best_loss", source);
  base::require(best_loss.is_null() || best_loss.is_number(), "{}: best_loss must be a number or null: {}",
                source, best_loss.dump());
  if (best_loss.is_number()) state.best_loss = best_loss.get<double>();
  if (object.contains("best_score")) state.best_score = parse_score(object["best_score"], source);
  state.fingerprint = parse_text(object, "fingerprint", source);
  if (object.contains("attention_cost")) {
    const nlohmann::json& cost = object["attention_cost"];
    base::require(cost.is_number() && cost.get<double>() > 0,
                  "{}: attention_cost must be a positive number: {}", source, cost.dump());
    state.attention_cost = cost.get<double>();
  }
  if (object.contains("packing_plan")) state.packing_plan = parse_text(object, "packing_plan", source);
  if (object.contains("options")) {
    const nlohmann::json& options = object["options"];
    base::require(options.is_object(), "{}: options must be an object: {}", source, options.dump());
    for (const auto& [name, value] : options.items()) {
      base::require(value.is_string(), "{}: the option {} must be a text: {}", source, name, value.dump());
      state.options[name] = value.get<std::string>();
    }
  }
  return state;
}

}  // namespace plenum::train
