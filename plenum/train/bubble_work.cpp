#include "plenum/train/bubble_work.h"

#include <utility>

#include <fmt/format.h>

#include "plenum/describe/bert.h"
#include "plenum/plan/matrix_schedule.h"

namespace plenum::train {

BubbleWork bubble_work(const RunPlan& plan) {
  const pipeline::BertProgramOptions& program = plan.program();
  const optim::OptimizerOptions& optimizer = program.optimizer;
  std::unique_ptr<schedule::Filler> filler =
      plan::bubble_filler(plan.strategy().matrices, describe::describe_bert(program.model), program.device,
                          program.capacity.rows);
  if (optimizer.kind == optim::OptimizerKind::Kfac) {
    return {.filler = std::move(filler),
            .optimizer = "K-FAC",
            .made = "inverses",
            .outside = "K-FAC works outside bubbles, in every step (--kfac-every makes it more seldom)"};
  }
  const std::int64_t every = optimizer.soap.refresh_steps();
  return {.filler = std::move(filler),
          .optimizer = "SOAP",
          .made = "bases",
          .outside =
              fmt::format("SOAP refreshes its bases outside bubbles, every {} steps (--soap-every)", every)};
}

}  // namespace plenum::train
