#pragma once

#include <string>
#include <string_view>

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// Writes an action as one word: code, stage, then where the type has them `.micro-batch`, `[first:end]`
/// (left out for the whole stage) or `[layer]`, `/factor`, `#piece/num_pieces`, `~age`. F2.1, B0.3[6:9],
/// KA1.2[4]/3~2, KI1[4]/3#1/2~3, N.
std::string action_text(const Action& action, const StageLayers& layers);

/// Says the same to people who know no codes: "forward, micro-batch 1, layers 0 to 11", "recompute,
/// micro-batch 0, layer 3", "agree". The stage is named where there are several.
std::string action_words(const Action& action, const StageLayers& layers);

/// Reads what action_text() writes. Throws UserError that says what is wrong with the word, without a place.
Action parse_action(std::string_view word, const StageLayers& layers);

}  // namespace plenum::schedule
