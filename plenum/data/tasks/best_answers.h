#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plenum/data/tasks/predictions.h"

namespace plenum::data {

/// Gives every prediction the best answer over its windows, as predict() says.
void find_answers(const TaskLogits& logits, const TaskOptions& options, std::vector<Prediction>& predictions);

/// How many characters stand before a byte of a text.
std::int64_t characters_before(std::string_view text, std::size_t byte);

}  // namespace plenum::data
