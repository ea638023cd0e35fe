#include "plenum/pipeline/stage_program.h"

#include <fmt/format.h>

#include "plenum/base/check.h"

namespace plenum::pipeline {

void StageProgram::refuse(const ActionRun& run) {
  throw base::InternalError(
      fmt::format("this program has no action {}", schedule::traits_of(run.action.type).name));
}

}  // namespace plenum::pipeline
