#pragma once

#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/plan/cluster.h"
#include "plenum/plan/matrix_work.h"

namespace plenum::plan {

/// What work on matrices takes at least, at the best efficiencies of the device and without launches:
/// matrices of several layers may go in one. Of one layer; all are alike.
struct MatrixBound {
  double elements = 0;                      ///< of matrices that are updated apart
  double weight_seconds = 0;                ///< of their weights, by their directions
  std::vector<double> update_seconds = {};  ///< of each map, before: Muon's and SOAP's directions
  std::vector<double> step_seconds = {};    ///< of each map, before ranks agree: K-FAC's, without curvature
};

/// Of the mean step. Only what cannot be in bubbles where these are filled. Nothing where there is no such
/// work.
MatrixBound matrix_bound(const describe::ModelDescription& slice, const MatrixWork& work,
                         const Cluster& cluster);

}  // namespace plenum::plan
