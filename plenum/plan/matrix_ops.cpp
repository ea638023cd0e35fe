#include "plenum/plan/matrix_ops.h"

#include <algorithm>
#include <map>

#include "plenum/base/check.h"
#include "plenum/memory/kfac_memory.h"
#include "plenum/plan/element_bytes.h"
#include "plenum/plan/make_op.h"

namespace plenum::plan {
namespace {

using describe::FactorShape;

/// A pass over `arguments` square matrices' worth of numbers.
Op square_pass(double size, double arguments) {
  Op op = make_op(OpKind::Gather, size, size, 1, kFloatBytes);
  op.bytes = arguments * kFloatBytes * size * size;
  return op;
}

/// A pass over `arguments` such numbers of each element.
Op element_pass(double num_elements, double arguments) {
  Op op = make_op(OpKind::Gather, num_elements, 1, 1, kFloatBytes);
  op.bytes = arguments * kFloatBytes * num_elements;
  return op;
}

double elements_of(const FactorShape& shape) {
  return static_cast<double>(shape.in_width) * static_cast<double>(shape.out_width);
}

/// The gradient is read, the moment read and written, the direction written.
constexpr double kMuonMoment = 4;

/// Equal operations become one that counts them.
void append(std::vector<Op>& ops, const Op& op) {
  const auto same = std::ranges::find_if(ops, [&](Op other) {
    other.count = op.count;
    return other == op;
  });
  if (same == ops.end()) {
    ops.push_back(op);
  } else {
    same->count += op.count;
  }
}

void append_product(std::vector<Op>& ops, double rows, double in, double out, double element_bytes,
                    double count = 1) {
  Op op = make_op(OpKind::ProductForward, rows, in, out, element_bytes);
  op.count = count;
  append(ops, op);
}

const describe::Layer& layer_of(const ActionOps& model, std::size_t layer) {
  return model.model().layers[layer];
}

bool is_behind_attention(const describe::Layer& layer, std::size_t map) {
  std::size_t num_projections = 0;
  for (const describe::LinearMap& projection : layer.attention.projections)
    num_projections += static_cast<std::size_t>(projection.num_parts);
  return map >= num_projections;
}

/// Rows of a map that are no padding: in the last layer behind attention those that heads read.
double real_rows(const ActionOps& model, std::size_t layer, std::size_t map, const ComputedWork& work) {
  const bool reads_labels = model.is_last(layer) && is_behind_attention(layer_of(model, layer), map);
  return reads_labels ? work.real_labels : work.tokens;
}

Op second_moment(const ActionOps& model, double rows, std::int64_t width) {
  return make_op(OpKind::SecondMoment, rows, static_cast<double>(width), 1, model.activation_bytes());
}

struct Sides {
  double rows = 0;
  double columns = 0;
  bool rotates_rows = false;
  bool rotates_columns = false;

  Sides(const FactorShape& shape, std::int64_t limit)
      : rows(static_cast<double>(shape.out_width)),
        columns(static_cast<double>(shape.in_width)),
        rotates_rows(shape.out_width <= limit),
        rotates_columns(shape.in_width <= limit) {}
  double elements() const { return rows * columns; }
};

}  // namespace

std::vector<Op> curvature_a_ops(const ActionOps& model, std::size_t layer, std::size_t map,
                                const ComputedWork& work) {
  if (work.is_empty() || memory::first_map_of_input(layer_of(model, layer), map) != map) return {};
  const double rows = real_rows(model, layer, map, work);
  const std::vector<FactorShape> shapes = factor_shapes(layer_of(model, layer));
  std::vector<Op> ops;
  if (map + 1 == shapes.size() && model.remakes_mlp_output()) {
    ops.push_back(make_op(OpKind::Activation, model.is_last(layer) ? work.read : work.rows,
                          static_cast<double>(shapes[map].in_width), 1, model.activation_bytes()));
  }
  ops.push_back(second_moment(model, rows, shapes[map].in_width));
  return ops;
}

std::vector<Op> curvature_b_ops(const ActionOps& model, std::size_t layer, std::size_t map,
                                const ComputedWork& work) {
  if (work.is_empty()) return {};
  return {second_moment(model, real_rows(model, layer, map, work),
                        factor_shapes(layer_of(model, layer))[map].out_width)};
}

std::vector<Op> inversion_ops(std::span<const FactorShape> shapes, tensor::Device device) {
  std::map<std::int64_t, double> num_matrices;
  for (const FactorShape& shape : shapes) {
    num_matrices[shape.in_width] += 1;
    num_matrices[shape.out_width] += 1;
  }
  std::vector<Op> ops;
  for (const auto& [width, count] : num_matrices) {
    const auto size = static_cast<double>(width);
    Op damping = square_pass(size, 1);  // halves of the sum and of the factor
    Op exchange = square_pass(size, 4);
    damping.count = exchange.count = count;
    const bool is_gpu = device == tensor::Device::Cuda;
    Op inverse = make_op(OpKind::Inverse, is_gpu ? count : 1, size, 1, kFloatBytes);
    if (!is_gpu) inverse.count = count;
    ops.insert(ops.end(), {damping, inverse, exchange});
  }
  return ops;
}

std::vector<Op> kfac_precondition_ops(std::span<const FactorShape> shapes) {
  std::vector<Op> ops;
  for (const FactorShape& shape : shapes) {
    append(ops, make_op(OpKind::Precondition, 1, static_cast<double>(shape.in_width),
                        static_cast<double>(shape.out_width), kFloatBytes));
  }
  return ops;
}

std::vector<Op> soap_factor_ops(std::span<const FactorShape> shapes, std::int64_t limit) {
  std::vector<Op> ops;
  for (const FactorShape& shape : shapes) {
    const Sides sides(shape, limit);
    append(ops, element_pass(sides.elements(), 2));  // the clipped gradient
    if (sides.rotates_rows) {
      append_product(ops, sides.rows, sides.columns, sides.rows, kFloatBytes);
      append(ops, square_pass(sides.rows, 3));
    }
    if (sides.rotates_columns) {
      append_product(ops, sides.columns, sides.rows, sides.columns, kFloatBytes);
      append(ops, square_pass(sides.columns, 3));
    }
  }
  return ops;
}

std::vector<Op> soap_basis_ops(std::span<const FactorShape> shapes, std::int64_t limit) {
  std::vector<Op> ops;
  const auto add_side = [&](double size) {
    append_product(ops, size, size, size, kFloatBytes);
    append(ops, square_pass(size, 3));  // the shifted product
    append(ops, make_op(OpKind::Orthonormalise, 1, size, 1, kFloatBytes));
    append(ops, square_pass(size, 2));  // the new basis
  };
  for (const FactorShape& shape : shapes) {
    const Sides sides(shape, limit);
    if (sides.rotates_rows) add_side(sides.rows);
    if (sides.rotates_columns) add_side(sides.columns);
  }
  return ops;
}

std::vector<Op> soap_direction_ops(std::span<const FactorShape> shapes, std::int64_t limit) {
  constexpr double kRotations = 3;  // of the gradient, of its mean, of the direction back
  std::vector<Op> ops;
  for (const FactorShape& shape : shapes) {
    const Sides sides(shape, limit);
    if (sides.rotates_rows)
      append_product(ops, sides.rows, sides.rows, sides.columns, kFloatBytes, kRotations);
    if (sides.rotates_columns)
      append_product(ops, sides.rows, sides.columns, sides.columns, kFloatBytes, kRotations);
    append(ops, element_pass(sides.elements(), 2 + 3));  // the clipped gradient, the first moment
    // Rotated gradient and first moment are read, the second moment read and written, the direction written.
    Op direction = make_op(OpKind::AdamW, sides.elements(), 1, 1, kFloatBytes);
    direction.bytes = (2 + 2 + 1) * kFloatBytes * sides.elements();
    append(ops, direction);
  }
  return ops;
}

std::vector<Op> muon_direction_ops(std::span<const FactorShape> shapes, double element_bytes) {
  constexpr double kIterations = 5;
  std::vector<Op> ops;
  for (const FactorShape& shape : shapes) {
    const auto least = static_cast<double>(std::min(shape.in_width, shape.out_width));
    const auto most = static_cast<double>(std::max(shape.in_width, shape.out_width));
    append(ops, element_pass(least * most, kMuonMoment + 2));              // and its length made 1
    append_product(ops, least, most, least, element_bytes, kIterations);   // A = X X^T
    append_product(ops, least, least, least, element_bytes, kIterations);  // A A
    Op polynomial = square_pass(least, 3);
    polynomial.count = kIterations;
    append(ops, polynomial);
    append_product(ops, least, least, most, element_bytes, kIterations);  // times X
  }
  return ops;
}

std::vector<Op> others_moment_ops(schedule::Preconditioner kind, std::span<const FactorShape> shapes) {
  constexpr double kSoapMoment = 5;  // of which the clipped gradient is written and read again
  const bool is_muon = kind == schedule::Preconditioner::Muon;
  std::vector<Op> ops;
  for (const FactorShape& shape : shapes)
    append(ops, element_pass(elements_of(shape), is_muon ? kMuonMoment : kSoapMoment));
  return ops;
}

std::vector<Op> matrix_weight_ops(std::span<const FactorShape> shapes, double weight_bytes) {
  std::vector<Op> ops;
  for (const FactorShape& shape : shapes) {
    Op pass = element_pass(elements_of(shape), 3);
    if (weight_bytes < kFloatBytes) pass.bytes += weight_bytes * elements_of(shape);
    append(ops, pass);
  }
  return ops;
}

std::vector<Op> whole_matrix_update_ops(const MatrixWork& work, std::span<const FactorShape> shapes,
                                        double weight_bytes) {
  std::vector<Op> ops;
  const auto add = [&](std::vector<Op> found, double share = 1) {
    for (Op& op : found) {
      op.count *= share;
      ops.push_back(op);
    }
  };
  if (work.kind == schedule::Preconditioner::Muon) {
    add(muon_direction_ops(shapes, weight_bytes));
  } else {
    add(soap_factor_ops(shapes, work.soap_limit));
    add(soap_basis_ops(shapes, work.soap_limit), 1 / static_cast<double>(work.every));
    add(soap_direction_ops(shapes, work.soap_limit));
  }
  add(matrix_weight_ops(shapes, weight_bytes));
  return ops;
}

Op update_op(OpKind rule, UpdatePart part, double num_elements, double weight_bytes) {
  Op op = make_op(rule, num_elements, 1, 1, weight_bytes);
  if (part == UpdatePart::All) return op;
  base::check(rule == OpKind::Lamb, "an update in two parts is LAMB's");
  // Gradient, both moments and weights are read, and moments written; then moments and weights are read.
  constexpr double kMomentsBytes = 6 * kFloatBytes;
  if (part == UpdatePart::Moments) {
    op.bytes = kMomentsBytes * num_elements;
  } else {
    op.bytes -= kMomentsBytes * num_elements;
  }
  return op;
}

}  // namespace plenum::plan
