#pragma once

#include "plenum/pipeline/bert_program.h"
#include "plenum/schedule/core/schedule.h"

namespace plenum::pipeline {

/// Throws UserError unless a BERT can be trained by the schedule with these options: it has one stage of the
/// model's layers, and only actions that BertProgram knows, in an order that it has memory for.
void require_bert_schedule(const schedule::Schedule& schedule, const BertProgramOptions& options);

}  // namespace plenum::pipeline
