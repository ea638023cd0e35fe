#pragma once

#include <cstddef>
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
  /// Throws UserError, without a place, when `record` is not a JSON object or the field is missing, there
  /// twice or not a string.
  std::string_view read(std::string_view record);

 private:
  struct Parser;

  std::string field_;
  std::unique_ptr<Parser> parser_;
  std::string padded_;
};

/// The bytes of an escape such as \u00e4.
inline constexpr std::size_t kJsonEscapeBytes = 6;

/// Writes \ufffd over each escape of half a surrogate pair that lacks its other half, which JSON allows and
/// no UTF-8 can say. Returns how many there were.
std::size_t replace_lone_surrogates(std::string& record);

}  // namespace plenum::io
