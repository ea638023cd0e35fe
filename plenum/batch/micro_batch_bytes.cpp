#include "plenum/batch/micro_batch_bytes.h"

#include <cstdint>

#include "plenum/batch/micro_batch.h"

namespace plenum::batch {

std::size_t micro_batch_bytes(const Capacity& capacity) {
  constexpr std::size_t kIndex = sizeof(std::int32_t);
  constexpr std::size_t kSample = sizeof(std::int64_t);
  constexpr std::size_t kGrowth = 2;
  // Id, segment, position and sample, and the row in each of three groupings; of those by word and by
  // position it may be the only row of its entry.
  constexpr std::size_t kRow = 3 * kIndex + kSample + 3 * kIndex + kGrowth * 2 * (2 * kIndex);
  constexpr std::size_t kSequence = kGrowth * (2 * kIndex + kSample);
  constexpr std::size_t kLabel = kGrowth * 2 * kIndex;
  constexpr std::size_t kFixed = sizeof(MicroBatch) + 512;  // ends of groupings, and what malloc adds
  return kFixed + static_cast<std::size_t>(capacity.rows) * kRow +
         static_cast<std::size_t>(capacity.sequences) * kSequence +
         static_cast<std::size_t>(capacity.read()) * kLabel;
}

}  // namespace plenum::batch
