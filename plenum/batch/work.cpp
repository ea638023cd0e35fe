#include "plenum/batch/work.h"

namespace plenum::batch {

Work& Work::operator+=(const Work& other) {
  tokens += other.tokens;
  squared_lengths += other.squared_lengths;
  windowed_pairs += other.windowed_pairs;
  masked += other.masked;
  sequences += other.sequences;
  return *this;
}

}  // namespace plenum::batch
