#pragma once

#include "plenum/base/function_ref.h"
#include "plenum/trace/timeline.h"

namespace plenum::train {

/// Takes spans out of a timeline, with the flows that lead to them or from them.
void remove_spans(trace::Timeline& timeline, base::FunctionRef<bool(const trace::Span&)> is_removed);

/// Adds what the first process did before the timeline begins: it waited so long for the data of the step, on
/// a track of its own.
void add_wait_for_data(trace::Timeline& timeline, double seconds);

}  // namespace plenum::train
