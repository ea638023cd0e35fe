#include "plenum/schedule/text/schedule_json.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "plenum/base/check.h"
#include "plenum/base/options.h"
#include "plenum/schedule/text/at_line.h"
#include "plenum/schedule/text/located_json.h"
#include "plenum/schedule/text/schedule_fields.h"
#include "plenum/schedule/text/step_text.h"

namespace plenum::schedule {
namespace {

using nlohmann::json;
using Kind = ScheduleField::Kind;

constexpr std::string_view kFormat = "plenum-schedule";
constexpr int kVersion = 1;

std::string json_key(const ScheduleField& field) {
  std::string key(field.name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The words of a field, which hold no character that JSON would escape unless it is Text, as a JSON value.
std::string json_value(Kind kind, const std::vector<std::string>& words) {
  switch (kind) {
    case Kind::Text:
    case Kind::Choice:
      return quoted(words.front());
    case Kind::Flag:
      return "true";
    case Kind::Number:
      return words.front();
    case Kind::Numbers:
      break;
  }
  return fmt::format("[{}]", fmt::join(words, ", "));
}

/// A whole number or a text as one word.
std::string word_of(const json& value, std::string_view what) {
  if (value.is_string()) return value.get<std::string>();
  base::require(value.is_number_unsigned(), "{} must be a whole number: {}", what, value.type_name());
  return std::to_string(value.get<std::uint64_t>());
}

class JsonReader {
 public:
  JsonReader(LocatedJson document, std::string_view source)
      : document_(std::move(document)), source_(source) {}

  Schedule run() {
    read_format();
    const std::vector<std::string> known = known_keys();
    for (const auto& [key, line] : document_.lines) {
      at_line(source_, line, [&, &key = key] {
        base::require(std::find(known.begin(), known.end(), key) != known.end(), "unknown key \"{}\"{}", key,
                      base::suggest_name(key, known));
      });
    }
    for (const ScheduleField& field : all_schedule_fields()) read_field(field);
    read_ranks();
    return std::move(schedule_);
  }

 private:
  std::size_t line_of(std::string_view key) const {
    const auto found = document_.lines.find(key);
    return found == document_.lines.end() ? 1 : found->second;
  }

  static std::vector<std::string> known_keys() {
    std::vector<std::string> keys = {"format", "version", "ranks"};
    for (const ScheduleField& field : all_schedule_fields()) keys.push_back(json_key(field));
    return keys;
  }

  void read_format() const {
    const json& value = document_.value;
    at_line(source_, line_of("format"), [&] {
      base::require(value.contains("format") && value["format"] == kFormat,
                    "a schedule has \"format\": \"{}\"", kFormat);
    });
    at_line(source_, line_of("version"), [&] {
      base::require(value.contains("version") && value["version"] == kVersion,
                    "a schedule has \"version\": {}", kVersion);
    });
  }

  void read_field(const ScheduleField& field) {
    const std::string key = json_key(field);
    if (!document_.value.contains(key)) return;
    const json& value = document_.value[key];
    at_line(source_, line_of(key), [&] {
      if (field.kind == Kind::Flag) {
        base::require(value.is_boolean(), "\"{}\" must be true or false", key);
        if (value.get<bool>()) field.set(schedule_, {});
        return;
      }
      std::vector<std::string> texts;
      if (field.kind == Kind::Numbers) {
        base::require(value.is_array(), "\"{}\" must be a list of numbers", key);
        for (const json& item : value) texts.push_back(word_of(item, key));
      } else {
        const bool is_text = field.kind == Kind::Text || field.kind == Kind::Choice;
        base::require(value.is_string() == is_text, "\"{}\" must be a {}", key, is_text ? "text" : "number");
        texts.push_back(word_of(value, key));
      }
      field.set(schedule_, std::vector<std::string_view>(texts.begin(), texts.end()));
    });
  }

  void read_ranks() {
    at_line(source_, line_of("ranks"), [this] {
      base::require(document_.value.contains("ranks") && document_.value["ranks"].is_array(),
                    "\"ranks\" must be a list of what each rank holds and does");
      for (const json& rank : document_.value["ranks"]) {
        base::require(rank.is_object(), "rank {} must be an object", schedule_.ranks.size());
        schedule_.ranks.emplace_back();
      }
    });
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) read_held_stages(rank);
    at_line(source_, line_of("ranks"), [this] { require_placed_problem(schedule_); });
    const StageLayers layers(schedule_.problem);
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) read_lanes(rank, layers);
    at_line(source_, line_of("ranks"), [this] { finish(); });
  }

  void read_held_stages(std::size_t rank) {
    const json& value = document_.value["ranks"][rank];
    at_line(source_, line_of_rank(rank, "holds"), [&] {
      base::require(value.contains("holds") && value["holds"].is_array(),
                    "rank {} must have \"holds\", a list of stages", rank);
      base::require(schedule_.num_stages() > 0, "a schedule needs at least one stage");
      for (const json& stage : value["holds"]) {
        schedule_.ranks[rank].stages.push_back(
            StageId::at(parse_count(word_of(stage, "a stage"), "a stage", 0, schedule_.num_stages() - 1)));
      }
    });
  }

  std::size_t line_of_rank(std::size_t rank, std::string_view key) const {
    const LocatedJson::Lines& lines = document_.item_lines[rank];
    const auto found = lines.find(key);
    if (found != lines.end()) return found->second;
    return lines.empty() ? line_of("ranks") : lines.begin()->second;
  }

  void read_lanes(std::size_t rank, const StageLayers& layers) {
    for (const auto& [key, value] : document_.value["ranks"][rank].items()) {
      if (key == "holds") continue;
      at_line(source_, line_of_rank(rank, key), [&, &key = key, &value = value] {
        const std::optional<Lane> lane = lane_named(key);
        base::require(lane.has_value(), "the lanes are compute, data, pipe and copy: \"{}\"", key);
        base::require(value.is_array() && !value.empty(), "\"{}\" must be a list of steps", key);
        for (const json& step : value) {
          base::require(step.is_string(), "a step of \"{}\" must be a text of actions", key);
          parse_step_text(step.get_ref<const std::string&>(), schedule_.problem, layers, *lane,
                          schedule_.ranks[rank]);
        }
        if (num_steps_ == 0) num_steps_ = value.size();
        base::require(value.size() == num_steps_, "\"{}\" of rank {} has {} steps, but the first has {}", key,
                      rank, value.size(), num_steps_);
      });
    }
  }

  void finish() {
    base::require(num_steps_ > 0, "no rank does anything");
    fill_empty_lanes(num_steps_, schedule_);
    require_well_formed(schedule_);
  }

  LocatedJson document_;
  std::string_view source_;
  std::size_t num_steps_ = 0;
  Schedule schedule_;
};

void append_rank(const RankProgram& rank, const StageLayers& layers, std::string& text) {
  std::vector<std::uint16_t> stages;
  for (const StageId stage : rank.stages) stages.push_back(stage.value);
  text += fmt::format("    {{\"holds\": [{}]", fmt::join(stages, ", "));
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    const LaneProgram& program = rank.lanes[lane];
    if (program.actions().empty()) continue;
    text += fmt::format(",\n     \"{}\": [", lane_name(static_cast<Lane>(lane)));
    for (std::size_t step = 0; step < program.num_steps(); ++step) {
      text += step == 0 ? "\"" : ", \"";
      append_step_text(program.step(step), layers, text);
      text += '"';
    }
    text += ']';
  }
  text += '}';
}

}  // namespace

std::string print_schedule_json(const Schedule& schedule) {
  std::string text = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n", kFormat, kVersion);
  for (const ScheduleField& field : all_schedule_fields()) {
    const std::vector<std::string> words = field.get(schedule);
    if (words.empty()) continue;
    text += fmt::format("  \"{}\": {},\n", json_key(field), json_value(field.kind, words));
  }
  text += "  \"ranks\": [";
  const StageLayers layers(schedule.problem);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    text += rank == 0 ? "\n" : ",\n";
    append_rank(schedule.ranks[rank], layers, text);
  }
  return text + "\n  ]\n}\n";
}

Schedule parse_schedule_json(std::string_view text, std::string_view source) {
  return JsonReader(parse_located_json(text, source), source).run();
}

}  // namespace plenum::schedule
