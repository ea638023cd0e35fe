#include "plenum/io/json_lines.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "plenum/base/check.h"

namespace plenum::io {
namespace {

/// The 16-bit unit that the escape at `at` stands for; nothing if it is not of the form \u00e4.
std::optional<std::uint32_t> escaped_unit(std::string_view record, std::size_t at) {
  const std::string_view escape = record.substr(std::min(at, record.size()), kJsonEscapeBytes);
  if (escape.size() < kJsonEscapeBytes || !escape.starts_with("\\u")) return std::nullopt;
  std::uint32_t unit = 0;
  const auto [end, error] = std::from_chars(escape.data() + 2, escape.data() + escape.size(), unit, 16);
  if (error != std::errc() || end != escape.data() + escape.size()) return std::nullopt;
  return unit;
}

bool is_high_surrogate(std::optional<std::uint32_t> unit) {
  return unit && *unit >= 0xD800 && *unit < 0xDC00;
}

bool is_low_surrogate(std::optional<std::uint32_t> unit) {
  return unit && *unit >= 0xDC00 && *unit < 0xE000;
}

}  // namespace

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
  std::size_t num_found = 0;
  for (const auto& [key, element] : object) {
    if (key != field_) continue;
    value = element;
    ++num_found;
  }
  base::require(num_found <= 1, "the object has the field '{}' twice; keep one of them", field_);
  if (num_found == 0) {
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

std::size_t replace_lone_surrogates(std::string& record) {
  std::size_t num_replaced = 0;
  for (std::size_t at = record.find('\\'); at < record.size(); at = record.find('\\', at)) {
    const std::optional<std::uint32_t> unit = escaped_unit(record, at);
    if (!unit) {
      at += 2;  // an escape of one character, which may be a backslash
    } else if (is_high_surrogate(unit) && is_low_surrogate(escaped_unit(record, at + kJsonEscapeBytes))) {
      at += 2 * kJsonEscapeBytes;
    } else {
      if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
        record.replace(at, kJsonEscapeBytes, "\\ufffd");
        ++num_replaced;
      }
      at += kJsonEscapeBytes;
    }
  }
  return num_replaced;
}

}  // namespace plenum::io
