#include "plenum/io/json_lines.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "plenum/base/check.h"

namespace plenum::io {

struct JsonTextField::Parser {
  simdjson::dom::parser parser;
};

JsonTextField::JsonTextField(std::string field)
    : field_(std::move(field)), parser_(std::make_unique<Parser>()) {}
JsonTextField::~JsonTextField() = default;
JsonTextField::JsonTextField(JsonTextField&&) noexcept = default;

std::string_view JsonTextField::read(std::string_view record) {
  padded_.assign(record);
  padded_.resize(record.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::object object;
  const simdjson::error_code error = parser_->parser.parse(padded_.data(), record.size(), false).get(object);
  base::require(error != simdjson::INCORRECT_TYPE, "the line is not a JSON object");
  base::require(error == simdjson::SUCCESS, "the line is not valid JSON: {}", simdjson::error_message(error));

  simdjson::dom::element value;
  if (object.at_key(field_).get(value) != simdjson::SUCCESS) {
    std::vector<std::string_view> keys;
    for (const auto& [key, unused] : object) keys.push_back(key);
    base::fail("the object has no field '{}'; choose one of {} by --text-field", field_,
               keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", ")));
  }
  if (value.is_null()) return {};
  std::string_view text;
  base::require(value.get(text) == simdjson::SUCCESS, "the field '{}' is not a string", field_);
  return text;
}

}  // namespace plenum::io
