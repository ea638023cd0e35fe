#include "plenum/schedule/generate/data_parallel.h"

#include "plenum/base/check.h"
#include "plenum/schedule/generate/one_forward_one_backward.h"

namespace plenum::schedule {

Schedule generate_data_parallel(const GeneratorOptions& options) {
  base::require(options.depth == 1, "schedule data-parallel has one stage: {} are asked for", options.depth);
  Schedule schedule = generate_one_forward_one_backward(options);
  schedule.name = "data-parallel";
  return schedule;
}

}  // namespace plenum::schedule
