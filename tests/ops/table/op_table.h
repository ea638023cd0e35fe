#pragma once

#include <string>
#include <vector>

#include "tests/ops/table/op_descriptor.h"

namespace plenum::ops {

/// Every op of plenum/kernels. To add one, write its descriptor and add it here.
const std::vector<OpDescriptor>& op_table();

/// Which op runs where, as Markdown: the table of docs/ops.md.
std::string support_table();

OpDescriptor activation_gelu_op();
OpDescriptor activation_tanh_op();
OpDescriptor adam_step_op();
OpDescriptor attention_op();
OpDescriptor class_loss_op();
OpDescriptor column_sums_op();
OpDescriptor dropout_rows_op();
OpDescriptor embedding_op();
OpDescriptor group_loss_op();
OpDescriptor kronecker_factors_op();
OpDescriptor lamb_halves_op();
OpDescriptor lamb_step_op();
OpDescriptor layer_norm_op();
OpDescriptor linear_op();
OpDescriptor mlp_gelu_op();
OpDescriptor precondition_op();
OpDescriptor muon_halves_op();
OpDescriptor muon_step_op();
OpDescriptor newton_schulz_op();
OpDescriptor orthonormalise_op();
OpDescriptor soap_parts_op();
OpDescriptor soap_step_op();
OpDescriptor round_to_compute_op();
OpDescriptor widen_from_compute_op();
OpDescriptor rows_op();
OpDescriptor pool_rows_op();
OpDescriptor second_moment_op();
OpDescriptor spd_inverse_op();
OpDescriptor squared_loss_op();
OpDescriptor sum_op();
OpDescriptor vocabulary_loss_op();
OpDescriptor vocabulary_parts_op();
OpDescriptor zero_all_op();

}  // namespace plenum::ops
