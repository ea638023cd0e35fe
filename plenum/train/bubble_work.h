#pragma once

#include <memory>
#include <string>

#include "plenum/schedule/fill/filler.h"
#include "plenum/train/run_plan.h"

namespace plenum::train {

/// What an optimizer does in the bubbles of a pipeline, and how notes speak of it.
struct BubbleWork {
  std::unique_ptr<schedule::Filler> filler;
  std::string optimizer;  ///< "K-FAC"
  std::string made;       ///< what a refresh makes: "inverses"
  std::string outside;    ///< what it does where bubbles have no room: "K-FAC works outside bubbles, ..."
};

/// Of the optimizer of a plan: K-FAC's curvature and inversions, or SOAP's factors and bases. With what is
/// kept for it in micro-batches and places of the plan.
BubbleWork bubble_work(const RunPlan& plan);

}  // namespace plenum::train
