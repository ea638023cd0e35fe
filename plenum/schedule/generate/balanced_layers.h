#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plenum::schedule {

/// How many layers each of `num_stages` stages gets, at least one, so that the dearest stage costs as little
/// as it can, and of all such divisions the one whose stages differ least; of equals one with more layers on
/// later stages, since earlier ones keep more micro-batches. `costs` are those of each layer, with what comes
/// before the first layer and behind the last counted to them. Throws UserError if there are fewer layers
/// than stages.
std::vector<std::uint16_t> balanced_layers(std::span<const double> costs, std::size_t num_stages);

}  // namespace plenum::schedule
