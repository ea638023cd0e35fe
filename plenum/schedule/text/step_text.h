#pragma once

#include <string>
#include <string_view>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// Appends the actions of a step as words with blanks between them.
void append_step_text(std::span<const Action> actions, const StageLayers& layers, std::string& text);

/// Reads a step of one lane from its words and appends it to the lane of the rank, whose stages are known.
/// Throws UserError without a place.
void parse_step_text(std::string_view words, const Problem& problem, const StageLayers& layers, Lane lane,
                     RankProgram& rank);

/// Lets every lane that has no steps yet do nothing in `num_steps` steps.
void fill_empty_lanes(std::size_t num_steps, Schedule& schedule);

/// Takes the first word from `text`; empty at its end.
std::string_view take_word(std::string_view& text);

}  // namespace plenum::schedule
