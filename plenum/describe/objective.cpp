#include "plenum/describe/objective.h"

namespace plenum::describe {

Objective masked_token_objective(std::int64_t vocabulary) {
  return {.name = "mlm",
          .title = "MLM",
          .labelled = "masked tokens",
          .count_key = "masked",
          .rows = RowsRead::Chosen,
          .loss = LossKind::WordCrossEntropy,
          .num_classes = vocabulary};
}

Objective next_sentence_objective() {
  return {.name = "nsp",
          .title = "NSP",
          .labelled = "sequences",
          .count_key = "",
          .rows = RowsRead::FirstOfSequence,
          .loss = LossKind::ClassCrossEntropy,
          .num_classes = 2};
}

}  // namespace plenum::describe
