#pragma once

#include <functional>
#include <string_view>

#include "plenum/trace/timeline.h"

namespace plenum::trace {

/// Writes a timeline as Chrome trace JSON (Trace Event Format), which ui.perfetto.dev and chrome://tracing
/// open: a process for each rank, a thread for each of its tracks, a complete event for each span with stage,
/// micro-batch and step as arguments and its label's explanation as "action", and an arrow for each flow. The
/// counter "micro-batches held" of each rank that goes back has those between their forward and the end of
/// their backward, stage by stage: what memory for activations follows from. Times are in microseconds, exact
/// to the nanosecond, from the earliest span on; a span lasts at least one, and begins when the one before it
/// on its track has ended, as of two at the same time Perfetto draws one within the other and an arrow binds
/// to whatever is under way. Hands the text on in pieces, so that its size does not matter.
void write_trace(const Timeline& timeline, const std::function<void(std::string_view)>& write);

}  // namespace plenum::trace
