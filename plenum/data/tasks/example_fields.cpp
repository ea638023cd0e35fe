#include "plenum/data/tasks/example_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/base/units.h"
#include "plenum/data/text/utf8.h"

namespace plenum::data {
namespace {

using nlohmann::json;

/// Null if it is not there.
const json* field_of(const TaskRecord& record, const std::string& name) {
  const auto found = record.fields.find(name);
  return found == record.fields.end() || found->is_null() ? nullptr : &*found;
}

std::string name_in(const json& value, const TaskRecord& record, const std::string& name) {
  if (value.is_string()) return value.get<std::string>();
  base::require(value.is_number() || value.is_boolean(), "{}: the field '{}' must be text or a number",
                record.place, name);
  return value.dump();
}

const json& list_field(const TaskRecord& record, const std::string& name) {
  const json* const value = field_of(record, name);
  base::require(value != nullptr && value->is_array(), "{}: the field '{}' must be a list", record.place,
                name);
  return *value;
}

/// The byte at which a character begins; nothing behind the end.
std::optional<std::size_t> byte_of_character(const std::string& text, std::int64_t index) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (; index > 0 && at != end; --index) at += decode_utf8(at, end).length;
  if (index != 0) return std::nullopt;
  return static_cast<std::size_t>(at - text.data());
}

AnswerSpan locate_answer(const json& text, const json& start, const TaskRecord& record,
                         const std::string& context) {
  base::require(text.is_string() && start.is_number_integer(),
                "{}: an answer must have a text, and a whole number as answer_start", record.place);
  AnswerSpan answer{.text = text.get<std::string>()};
  const auto character = start.get<std::int64_t>();
  base::require(!answer.text.empty(), "{}: an answer is empty; a question without one has an empty list",
                record.place);
  const std::optional<std::size_t> begin =
      character < 0 ? std::nullopt : byte_of_character(context, character);
  base::require(begin && context.compare(*begin, answer.text.size(), answer.text) == 0,
                "{}: the answer '{}' does not stand at character {} of the context", record.place,
                answer.text, character);
  answer.begin = *begin;
  return answer;
}

std::vector<AnswerSpan> read_answers(const json& value, const TaskRecord& record,
                                     const std::string& context) {
  std::vector<AnswerSpan> answers;
  if (value.is_array()) {
    for (const json& answer : value) {
      base::require(answer.is_object() && answer.contains("text") && answer.contains("answer_start"),
                    "{}: an answer must be an object with text and answer_start", record.place);
      answers.push_back(locate_answer(answer.at("text"), answer.at("answer_start"), record, context));
    }
    return answers;
  }
  base::require(value.is_object() && value.contains("text") && value.contains("answer_start"),
                "{}: answers must be a list, or an object with text and answer_start", record.place);
  const json& texts = value.at("text");
  const json& starts = value.at("answer_start");
  if (!texts.is_array()) return {locate_answer(texts, starts, record, context)};
  base::require(starts.is_array() && starts.size() == texts.size(),
                "{}: answers must have as many answer_start as texts", record.place);
  for (std::size_t i = 0; i < texts.size(); ++i)
    answers.push_back(locate_answer(texts[i], starts[i], record, context));
  return answers;
}

}  // namespace

std::string text_field(const TaskRecord& record, const std::string& name) {
  const json* const value = field_of(record, name);
  base::require(value != nullptr && value->is_string(), "{}: the field '{}' must be text", record.place,
                name);
  return value->get<std::string>();
}

std::optional<std::string> name_field(const TaskRecord& record, const std::string& name) {
  const json* const value = name.empty() ? nullptr : field_of(record, name);
  if (value == nullptr) return std::nullopt;
  std::string text = name_in(*value, record, name);
  if (text.empty()) return std::nullopt;
  return text;
}

std::vector<std::string> text_list_field(const TaskRecord& record, const std::string& name) {
  std::vector<std::string> texts;
  for (const json& text : list_field(record, name)) {
    base::require(text.is_string(), "{}: the field '{}' must be a list of texts", record.place, name);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::optional<std::vector<std::string>> name_list_field(const TaskRecord& record, const std::string& name) {
  if (name.empty() || field_of(record, name) == nullptr) return std::nullopt;
  std::vector<std::string> names;
  for (const json& value : list_field(record, name)) names.push_back(name_in(value, record, name));
  return names;
}

std::optional<double> number_field(const TaskRecord& record, const std::string& name) {
  const std::optional<std::string> text = name_field(record, name);
  if (!text) return std::nullopt;
  double number = 0;
  try {
    number = base::parse_number(*text, name);
  } catch (const base::UserError& error) {
    base::fail("{}: {}", record.place, error.what());
  }
  base::require(std::isfinite(static_cast<float>(number)), "{}: the number {} is too large", record.place,
                *text);
  return number;
}

std::optional<std::vector<AnswerSpan>> answers_field(const TaskRecord& record, const std::string& name,
                                                     const std::string& context) {
  const json* const value = name.empty() ? nullptr : field_of(record, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return read_answers(*value, record, context);
  if (value->get_ref<const std::string&>().empty()) return std::nullopt;
  const json parsed = json::parse(value->get_ref<const std::string&>(), nullptr, /*allow_exceptions=*/false);
  base::require(!parsed.is_discarded(), "{}: the field '{}' is not the JSON of answers", record.place, name);
  return read_answers(parsed, record, context);
}

std::optional<std::int32_t> choice_field(const TaskRecord& record, const std::string& name,
                                         std::size_t num_choices) {
  const std::optional<std::string> text = name_field(record, name);
  if (!text || *text == "-1") return std::nullopt;
  std::int64_t number = -1;
  if (text->size() == 1 && text->front() >= 'A' && text->front() <= 'Z') {
    number = text->front() - 'A';
  } else if (text->size() <= 9 && text->find_first_not_of("0123456789") == std::string::npos) {
    number = base::parse_integer(*text, name);
  }
  base::require(number >= 0 && std::cmp_less(number, num_choices),
                "{}: the right choice is '{}', but must be a number from 0 to {}, or a letter from A",
                record.place, *text, num_choices - 1);
  return static_cast<std::int32_t>(number);
}

}  // namespace plenum::data
