#pragma once

#include <string>
#include <string_view>

namespace plenum::data {

/// What sequences are trained for: masked tokens, alone or with the question whether B follows A.
enum class Objective { MaskedLanguageModel, WithNextSentence };

/// "mlm" or "mlm+nsp".
std::string_view name_of(Objective objective);

/// Throws UserError naming `source` for anything but a name that name_of gives.
Objective objective_of(std::string_view name, const std::string& source);

}  // namespace plenum::data
