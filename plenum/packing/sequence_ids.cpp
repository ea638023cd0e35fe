#include "plenum/packing/sequence_ids.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::packing {

SequenceIds::SequenceIds(const LengthHistogram& histogram) : first_{0} {
  first_.reserve(histogram.counts.size() + 1);
  for (const std::uint64_t count : histogram.counts) first_.push_back(first_.back() + count);
}

std::int64_t SequenceIds::length_of(std::uint64_t id) const {
  base::check(id < num_sequences(), "there is no such sequence: id={} sequences={}", id, num_sequences());
  return std::upper_bound(first_.begin(), first_.end(), id) - first_.begin() - 1;
}

}  // namespace plenum::packing
