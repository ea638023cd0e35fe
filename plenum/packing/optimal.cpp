#include "plenum/packing/optimal.h"

#include "plenum/packing/first_fit.h"

namespace plenum::packing {

OptimalResult pack_optimal(const PackingProblem& problem, const OptimalOptions& /*options*/) {
  check_problem(problem);
  OptimalResult result{.plan = {.capacity = problem.capacity, .depth = problem.depth, .patterns = {}},
                       .bound = combinatorial_bound(problem)};
  append_first_fit(problem.histogram.counts, result.plan);
  check_plan(result.plan, problem);
  return result;
}

}  // namespace plenum::packing
