#include "plenum/batch/work.h"

namespace plenum::batch {

Work& Work::operator+=(const Work& other) {
  tokens += other.tokens;
  squared_lengths += other.squared_lengths;
  sequences += other.sequences;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] += other.labels[i];
  return *this;
}

}  // namespace plenum::batch
