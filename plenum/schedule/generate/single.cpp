#include "plenum/schedule/generate/single.h"

#include "plenum/base/check.h"
#include "plenum/schedule/generate/one_forward_one_backward.h"

namespace plenum::schedule {

Schedule generate_single(const GeneratorOptions& options) {
  base::require(options.depth == 1 && options.num_replicas == 1,
                "schedule single runs on one rank: {} stages and {} replicas are asked for", options.depth,
                options.num_replicas);
  Schedule schedule = generate_one_forward_one_backward(options);
  schedule.name = "single";
  return schedule;
}

}  // namespace plenum::schedule
