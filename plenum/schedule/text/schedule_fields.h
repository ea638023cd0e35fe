#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// One setting in the head of a schedule file. The text and the JSON form share this table, so they cannot
/// disagree.
struct ScheduleField {
  enum class Kind { Text, Choice, Flag, Number, Numbers };

  std::string_view name;  ///< as in text; JSON has _ for -
  Kind kind;
  /// Gives its words; nothing where it has its default, which files leave out. A flag that is set gives one
  /// empty word.
  std::vector<std::string> (*get)(const Schedule& schedule);
  /// Overwrites it with what the words say: one for Text, Choice and Number, none for Flag. Throws UserError
  /// without a place.
  void (*set)(Schedule& schedule, std::span<const std::string_view> words);
};

/// In the order in which files have them.
std::span<const ScheduleField> all_schedule_fields();

/// Null if there is no such field.
const ScheduleField* schedule_field_named(std::string_view name);

/// A whole decimal number, all of `word`, from `least` to `greatest`. Throws UserError naming `what`.
std::uint64_t parse_count(std::string_view word, std::string_view what, std::uint64_t least,
                          std::uint64_t greatest);

}  // namespace plenum::schedule
