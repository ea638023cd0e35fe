#include "plenum/schedule/check/activation_peaks.h"

namespace plenum::schedule {

std::vector<ActivationPeak> activation_peaks(const Dataflow& dataflow, KeptFor kept_for) {
  std::vector<ActivationPeak> peaks;
  for (std::size_t r = 0; r < dataflow.schedule().ranks.size(); ++r) {
    const Rank rank = Rank::at(r);
    const std::vector<Lifetime> lifetimes = kept_lifetimes(dataflow, rank, kept_for);
    const std::int64_t cycle = cycle_time(dataflow.schedule(), rank);
    peaks.push_back({.layers = most_at_once(lifetimes, cycle),
                     .micro_batches = most_at_once(by_micro_batch(lifetimes, dataflow.layers()), cycle)});
  }
  return peaks;
}

}  // namespace plenum::schedule
