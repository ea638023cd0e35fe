#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plenum::schedule {

/// What one layer costs for one micro-batch.
struct LayerCosts {
  double forward_seconds = 0;
  double backward_seconds = 0;
  double curvature_seconds = 0;     ///< K-FAC: A and B of all its linear maps
  double inversion_seconds = 0;     ///< both factors of all its linear maps, once for the whole batch
  double precondition_seconds = 0;  ///< the gradients of all its linear maps, once for the whole batch
  double parameter_bytes = 0;
  double activation_bytes = 0;   ///< kept from forward to backward
  double peak_error_bytes = 0;   ///< output gradients alive at most in backward
  double saved_error_bytes = 0;  ///< output gradients kept for curvature
  double factor_bytes = 0;       ///< A and B of all its linear maps
};

/// Measured costs of a layer by micro-batch size.
class LayerProfile {
 public:
  struct Row {
    std::int64_t batch = 0;
    LayerCosts costs;
  };

  /// At least one row, batches greater than zero and all different, in any order.
  LayerProfile(std::vector<Row> rows, std::string source);

  /// The costs for micro-batches of this many sequences: as measured, or linear between the two measured next
  /// to it. Throws UserError that says what was measured if that lies outside.
  LayerCosts row(std::int64_t batch) const;

  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;  ///< by batch
  std::string source_;
};

/// Reads a profile as comma-separated text: a header that names at least bs, time_f, time_b, time_kron,
/// time_inv, time_prec (milliseconds), mem_param, mem_act, mem_peak_err, mem_save_err, mem_kron (MiB) in any
/// order, then a row for every micro-batch size. Throws UserError that begins with `source` and the line.
LayerProfile parse_layer_profile(std::string_view text, std::string_view source);

}  // namespace plenum::schedule
