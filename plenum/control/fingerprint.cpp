#include "plenum/control/fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

#include "plenum/control/byte_text.h"
#include "plenum/control/message.h"

namespace plenum::control {
namespace {

constexpr std::size_t kMostNamed = 3;

const std::string* value_of(const Fingerprint& fingerprint, std::string_view name) {
  const auto found = std::ranges::find(fingerprint, name, &std::pair<std::string, std::string>::first);
  return found == fingerprint.end() ? nullptr : &found->second;
}

/// A value as a message quotes it.
std::string quoted(const std::string* value) {
  constexpr std::size_t kMostShown = 100;
  if (value == nullptr) return "not there";
  if (value->empty()) return "empty";
  return value->size() <= kMostShown ? *value : value->substr(0, kMostShown) + " ...";
}

}  // namespace

std::string encode(const Fingerprint& fingerprint) {
  ByteWriter writer;
  for (const auto& [name, value] : fingerprint) writer.text(name).text(value);
  return writer.result();
}

std::optional<Fingerprint> parse_fingerprint(std::string_view bytes) {
  Fingerprint fingerprint;
  ByteReader reader(bytes);
  while (reader.is_good() && reader.num_left() > 0) {
    const std::string_view name = reader.text(kMostExchangeBytes);
    const std::string_view value = reader.text(kMostExchangeBytes);
    fingerprint.emplace_back(name, value);
  }
  if (!reader.is_finished()) return std::nullopt;
  return fingerprint;
}

std::string difference_text(const Fingerprint& theirs, const Fingerprint& ours) {
  std::string text;
  std::size_t num_differences = 0;
  const auto compare = [&](const std::string& name, const std::string* their, const std::string* our) {
    if (their != nullptr && our != nullptr && *their == *our) return;
    if (++num_differences > kMostNamed) return;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} is {} and not {}", quoted(&name), quoted(their), quoted(our));
  };
  for (const auto& [name, value] : ours) compare(name, value_of(theirs, name), &value);
  for (const auto& [name, value] : theirs) {
    if (value_of(ours, name) == nullptr) compare(name, &value, nullptr);
  }
  if (num_differences > kMostNamed) text += fmt::format(", and {} more", num_differences - kMostNamed);
  return text;
}

}  // namespace plenum::control
