#include "plenum/data/batches/histogram_sequences.h"

#include <utility>

#include "plenum/base/check.h"

namespace plenum::data {

HistogramSequences::HistogramSequences(packing::LengthHistogram histogram, std::int64_t max_length,
                                       bool has_next_sentence, std::string name)
    : histogram_(std::move(histogram)),
      ids_(histogram_),
      max_length_(max_length),
      has_next_sentence_(has_next_sentence),
      name_(std::move(name)) {
  base::require(ids_.num_sequences() > 0, "{} has no sequences", name_);
  base::require(histogram_.longest() <= max_length_,
                "{} has sequences of up to {} tokens; --max-length is {}", name_, histogram_.longest(),
                max_length_);
}

void HistogramSequences::append(std::uint64_t id, std::vector<TokenId>& /*tokens*/,
                                std::vector<std::uint8_t>& /*segments*/) const {
  base::check(false, "of these sequences only lengths are known: id={}", id);
}

bool HistogramSequences::is_random_next(std::uint64_t id) const {
  base::check(false, "of these sequences only lengths are known: id={}", id);
  return false;
}

}  // namespace plenum::data
