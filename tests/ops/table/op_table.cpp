#include "tests/ops/table/op_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace plenum::ops {

const std::vector<OpDescriptor>& op_table() {
  static const std::vector<OpDescriptor> ops = {
      linear_op(),
      mlp_gelu_op(),
      attention_op(),
      layer_norm_op(),
      embedding_op(),
      activation_gelu_op(),
      activation_tanh_op(),
      vocabulary_loss_op(),
      vocabulary_parts_op(),
      class_loss_op(),
      squared_loss_op(),
      group_loss_op(),
      dropout_rows_op(),
      rows_op(),
      pool_rows_op(),
      column_sums_op(),
      sum_op(),
      adam_step_op(),
      lamb_step_op(),
      lamb_halves_op(),
      second_moment_op(),
      spd_inverse_op(),
      kronecker_factors_op(),
      precondition_op(),
      newton_schulz_op(),
      muon_step_op(),
      muon_halves_op(),
      orthonormalise_op(),
      soap_step_op(),
      soap_parts_op(),
      round_to_compute_op(),
      widen_from_compute_op(),
      zero_all_op(),
  };
  return ops;
}

std::string support_table() {
  std::string text = "| op | functions | CPU | GPU |\n|---|---|---|---|\n";
  for (const OpDescriptor& op : op_table()) {
    std::string functions;
    for (const std::string& function : op.functions) {
      functions += fmt::format("{}`{}`", functions.empty() ? "" : ", ", function);
    }
    const auto mark = [&](tensor::Device device) {
      return std::ranges::find(op.devices, device) != op.devices.end() ? "yes" : "no";
    };
    text += fmt::format("| {} | {} | {} | {} |\n", op.name, functions, mark(tensor::Device::Cpu),
                        mark(tensor::Device::Cuda));
  }
  return text;
}

}  // namespace plenum::ops
