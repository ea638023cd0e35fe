#pragma once

#include <string>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/trace/timeline.h"
#include "plenum/train/measured_step.h"

namespace plenum::train {

/// Takes spans out of a timeline, with the flows that lead to them or from them.
void remove_spans(trace::Timeline& timeline, base::FunctionRef<bool(const trace::Span&)> is_removed);

/// Takes out what was done for micro-batches that are empty.
void remove_empty_micro_batches(trace::Timeline& timeline, const std::vector<bool>& is_empty);

/// Leaves one of the steps of a cycle, from its beginning to its end.
void keep_step(trace::Timeline& timeline, std::size_t cycle_step);

/// The timeline of a step for --trace: without empty micro-batches, and with the wait for its data.
trace::Timeline timeline_of_step(const schedule::Schedule& schedule, const MeasuredStep& step,
                                 std::string title);

/// Adds what the first process did before the timeline begins: it waited so long for the data of the step, on
/// a track of its own.
void add_wait_for_data(trace::Timeline& timeline, double seconds);

}  // namespace plenum::train
