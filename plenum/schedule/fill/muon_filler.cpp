#include "plenum/schedule/fill/muon_filler.h"

#include <limits>

#include "plenum/base/check.h"
#include "plenum/schedule/fill/preconditioning.h"

namespace plenum::schedule {

MuonFiller::MuonFiller(std::size_t num_maps) : num_maps_(num_maps) {
  base::require(num_maps >= 1 && num_maps <= std::numeric_limits<std::uint16_t>::max(),
                "Muon needs at least one linear map in a layer: {}", num_maps);
}

void MuonFiller::change(Problem& problem) const {
  problem.preconditioner = Preconditioner::Muon;
  problem.num_factors = static_cast<std::uint16_t>(num_maps_);
}

void MuonFiller::add_step_actions(const Dataflow& dataflow, Rank rank, std::vector<Action>& actions) const {
  add_preconditioning(dataflow, rank, actions);
}

}  // namespace plenum::schedule
