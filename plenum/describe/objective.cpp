#include "plenum/describe/objective.h"

namespace plenum::describe {

Objective masked_token_objective(std::int64_t vocabulary) {
  return {.name = "mlm",
          .title = "MLM",
          .rows = RowsRead::Chosen,
          .loss = LossKind::WordCrossEntropy,
          .num_classes = vocabulary};
}

Objective next_sentence_objective() {
  return {.name = "nsp",
          .title = "next-sentence",
          .rows = RowsRead::FirstOfSequence,
          .loss = LossKind::ClassCrossEntropy,
          .num_classes = 2};
}

}  // namespace plenum::describe
