#include "plenum/schedule/text/step_text.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/schedule/core/action_text.h"

namespace plenum::schedule {

void append_step_text(std::span<const Action> actions, const StageLayers& layers, std::string& text) {
  bool is_first = true;
  for (const Action& action : actions) {
    if (!is_first) text += ' ';
    text += action_text(action, layers);
    is_first = false;
  }
}

void parse_step_text(std::string_view words, const Problem& problem, const StageLayers& layers, Lane lane,
                     RankProgram& rank) {
  LaneProgram& program = rank.lane(lane);
  for (std::string_view word = take_word(words); !word.empty(); word = take_word(words)) {
    const Action action = parse_action(word, layers);
    const char* reason = reason_against(action, lane, rank, problem, layers);
    if (reason != nullptr) base::fail("action '{}': {}", word, reason);
    program.append(action);
  }
  program.end_step();
}

void fill_empty_lanes(std::size_t num_steps, Schedule& schedule) {
  for (RankProgram& rank : schedule.ranks) {
    for (LaneProgram& lane : rank.lanes) {
      while (lane.num_steps() < num_steps) lane.end_step();
    }
  }
}

std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace plenum::schedule
