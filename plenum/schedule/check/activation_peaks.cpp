#include "plenum/schedule/check/activation_peaks.h"

namespace plenum::schedule {

std::vector<std::size_t> activation_peaks(const Dataflow& dataflow, KeptFor kept_for) {
  std::vector<std::size_t> peaks;
  for (std::size_t r = 0; r < dataflow.schedule().ranks.size(); ++r) {
    const Rank rank = Rank::at(r);
    peaks.push_back(
        most_at_once(kept_lifetimes(dataflow, rank, kept_for), cycle_time(dataflow.schedule(), rank)));
  }
  return peaks;
}

}  // namespace plenum::schedule
