#pragma once

#include "plenum/schedule/core/schedule.h"

namespace plenum::schedule {

/// One rank that trains what the ranks of a schedule with K-FAC, Shampoo or SOAP train together: in each step
/// of its cycle the same statistics are taken, right behind the backwards that they come from, and inverses
/// (or roots, or bases) are completed in the step in which the ranks complete them, before or behind the
/// preconditioning of their layer as there. So gradients are preconditioned by inverses of the same age,
/// without bubbles that hide the work: to study how a filled schedule converges. Throws UserError for a
/// schedule without such work.
Schedule on_one_rank(const Schedule& schedule);

}  // namespace plenum::schedule
