#include "plenum/schedule/text/parse_schedule.h"

#include "plenum/schedule/text/schedule_json.h"
#include "plenum/schedule/text/schedule_text.h"

namespace plenum::schedule {

Schedule parse_schedule(std::string_view text, std::string_view source) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  return is_json ? parse_schedule_json(text, source) : parse_schedule_text(text, source);
}

}  // namespace plenum::schedule
