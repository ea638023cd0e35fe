#include "plenum/batch/micro_batch.h"

namespace plenum::batch {

Work MicroBatch::work() const {
  Work work{.masked = static_cast<std::int64_t>(masked_rows.size()),
            .sequences = static_cast<std::int64_t>(starts.size())};
  for (const std::int64_t length : lengths) {
    work.tokens += length;
    work.squared_lengths += length * length;
  }
  return work;
}

}  // namespace plenum::batch
