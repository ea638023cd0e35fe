#pragma once

#include <memory>

#include "plenum/describe/model_description.h"
#include "plenum/plan/matrix_work.h"
#include "plenum/schedule/core/schedule.h"
#include "plenum/schedule/fill/filler.h"
#include "plenum/tensor/device.h"

namespace plenum::plan {

/// A step with the work on matrices outside bubbles, in a cycle of `every` steps: K-FAC's, or Muon's and
/// SOAP's where several ranks of CPUs hold a stage and divide it. The same schedule where there is none, or
/// where the update does all of it.
schedule::Schedule with_matrix_work(const schedule::Schedule& plain, const MatrixWork& work,
                                    tensor::Device device, const describe::ModelDescription& model);

/// What is put into the bubbles of a pipeline: K-FAC's curvature and inversions, or SOAP's factors and bases,
/// with what is kept for it in micro-batches of so many rows.
std::unique_ptr<schedule::Filler> bubble_filler(const MatrixWork& work,
                                                const describe::ModelDescription& model,
                                                tensor::Device device, std::int64_t rows);

}  // namespace plenum::plan
