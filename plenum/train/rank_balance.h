#pragma once

#include <memory>

#include "plenum/base/function_ref.h"
#include "plenum/train/processes.h"
#include "plenum/train/run_directory.h"
#include "plenum/train/run_plan.h"

namespace plenum::train {

/// The attention cost (data::StepBatchSource) by which a run that begins divides its work; all processes
/// choose at the same time. It is 1, operations, unless what the first of them measures would divide the work
/// noticeably better: no two measurements are the same, but the bytes of two runs are to be. Nothing is
/// measured where there is nothing to divide, where steps are too short to matter, and on a GPU.
///
/// `by_operations` is the plan for 1, and `plan_with` gives that for another cost.
double choose_attention_cost(const RunPlan& by_operations,
                             base::FunctionRef<std::unique_ptr<RunPlan>(double)> plan_with,
                             const Processes& processes, const Note& note);

}  // namespace plenum::train
