#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace plenum::io {

/// Takes one text field out of JSON objects. Keeps its memory between records.
class JsonTextField {
 public:
  explicit JsonTextField(std::string field);
  ~JsonTextField();
  JsonTextField(JsonTextField&&) noexcept;

  /// The field's text in the object that `record` holds, valid until the next call; null gives an empty text.
  /// Throws UserError, without a place, when `record` is not a JSON object or the field is missing or not a
  /// string.
  std::string_view read(std::string_view record);

 private:
  struct Parser;

  std::string field_;
  std::unique_ptr<Parser> parser_;
  std::string padded_;
};

}  // namespace plenum::io
