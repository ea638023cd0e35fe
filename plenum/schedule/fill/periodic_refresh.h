#pragma once

#include <cstddef>

#include "plenum/schedule/fill/filler.h"

namespace plenum::schedule {

/// Adds a filler's work to a one-step schedule without looking for bubbles: the first of every `every` steps
/// renews it, from its own statistics and before it uses them, and all steps do what the filler adds to every
/// step, with the newest. Work on a micro-batch stands right behind the backward that makes its last input,
/// so nothing is kept for it longer than for a backward. Where there is one stage, all that a rank inverts is
/// one action, and so is its preconditioning unless other ranks wait for parts of it. Throws UserError if the
/// schedule has more than one step or a preconditioner already, or `every` is more than a schedule can say.
Schedule with_periodic_refresh(const Schedule& base, const Filler& filler, std::size_t every);

}  // namespace plenum::schedule
