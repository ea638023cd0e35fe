#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plenum/describe/model_description.h"
#include "plenum/plan/action_ops.h"
#include "plenum/plan/matrix_work.h"
#include "plenum/plan/op.h"

namespace plenum::plan {

// The operations of second-order work and of updates (pipeline/kfac_work, optim/kfac, optim/soap, optim/muon,
// optim/optimizer). A map is counted as describe::factor_shapes() counts the matrices of a layer.

/// K-FAC's second moment of a map's input over the real rows of a micro-batch. Maps with the same input share
/// it: nothing for the others.
std::vector<Op> curvature_a_ops(const ActionOps& model, std::size_t layer, std::size_t map,
                                const ComputedWork& work);
/// The same of its output's gradient.
std::vector<Op> curvature_b_ops(const ActionOps& model, std::size_t layer, std::size_t map,
                                const ComputedWork& work);

/// K-FAC's damped factors of matrices of these shapes, their inverses, and their exchange with those in use.
/// A GPU inverts all of a size at once. Running averages are not counted.
std::vector<Op> inversion_ops(std::span<const describe::FactorShape> shapes, tensor::Device device);
/// K-FAC's product of gradients with both inverses.
std::vector<Op> kfac_precondition_ops(std::span<const describe::FactorShape> shapes);

/// SOAP's factors of gradients; one iteration of their bases; and the direction in them, with both moments
/// and three rotations. Sides above the limit are not rotated.
std::vector<Op> soap_factor_ops(std::span<const describe::FactorShape> shapes, std::int64_t limit);
std::vector<Op> soap_basis_ops(std::span<const describe::FactorShape> shapes, std::int64_t limit);
std::vector<Op> soap_direction_ops(std::span<const describe::FactorShape> shapes, std::int64_t limit);
/// Muon's moment, and from it five iterations of Newton-Schulz.
std::vector<Op> muon_direction_ops(std::span<const describe::FactorShape> shapes, double element_bytes);
/// The first moment of matrices whose direction another rank makes.
std::vector<Op> others_moment_ops(schedule::Preconditioner kind,
                                  std::span<const describe::FactorShape> shapes);
/// The weights of matrices by their directions.
std::vector<Op> matrix_weight_ops(std::span<const describe::FactorShape> shapes, double weight_bytes);

/// What an update does with matrices that it updates whole: SOAP's bases in one of `every` steps.
std::vector<Op> whole_matrix_update_ops(const MatrixWork& work, std::span<const describe::FactorShape> shapes,
                                        double weight_bytes);

/// The part of an update that an action does: all of it, or where norms of tensors are summed over ranks in
/// between, moments and then weights.
enum class UpdatePart : std::uint8_t { All, Moments, Weights };
Op update_op(OpKind rule, UpdatePart part, double num_elements, double weight_bytes);

}  // namespace plenum::plan
