#pragma once

#include <cstdint>

#include "plenum/base/function_ref.h"
#include "plenum/train/processes.h"

namespace plenum::train {

/// What a process does in work that all do together: its own part, or it waits for the others, however long
/// they take.
enum class JointPhase : std::uint8_t { Works, Waits };
using TellPhase = base::FunctionRef<void(JointPhase)>;

/// Does this process's part of something that all do at the same time, and waits for the others. Where the
/// part of one failed for a reason that the user can mend, as writing does on a full disk, all throw the same
/// UserError, which names its rank.
void do_together(const Processes& processes, TellPhase tell, base::FunctionRef<void()> own_part);

}  // namespace plenum::train
