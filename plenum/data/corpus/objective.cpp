#include "plenum/data/corpus/objective.h"

#include "plenum/base/check.h"

namespace plenum::data {

std::string_view name_of(Objective objective) {
  return objective == Objective::WithNextSentence ? "mlm+nsp" : "mlm";
}

Objective objective_of(std::string_view name, const std::string& source) {
  for (const Objective objective : {Objective::MaskedLanguageModel, Objective::WithNextSentence}) {
    if (name == name_of(objective)) return objective;
  }
  base::fail("{}: unknown objective '{}'", source, name);
}

}  // namespace plenum::data
