#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "plenum/calibrate/argument_room.h"
#include "plenum/calibrate/bound_op.h"
#include "plenum/kernels/dropout.h"
#include "plenum/kernels/optimizer_step.h"
#include "plenum/plan/op.h"
#include "plenum/tensor/precision.h"

namespace plenum::calibrate {

/// An operation's sizes in whole numbers.
struct OpSizes {
  explicit OpSizes(const plan::Op& op) : T(whole(op.rows)), D(whole(op.in)), E(whole(op.out)) {
    const bool is_copy = op.kind == plan::OpKind::Gather || op.kind == plan::OpKind::Fill;
    if (!is_copy || D > 1) return;
    // A flat buffer, which nobody copies element by element.
    D = std::min<std::int64_t>(T, kFlatWidth);
    T = (T + D - 1) / D;
  }
  static std::int64_t whole(double size) { return std::max<std::int64_t>(1, std::llround(size)); }

  static constexpr std::int64_t kFlatWidth = 1024;
  std::int64_t T, D, E;
};

/// The ranges in which an optimizer updates so many parameters: tensors of a layer's size.
std::vector<kernels::FlatRange> update_ranges(std::int64_t num_parameters);

/// Cuts an operation's arguments out of a room: a method for each kind.
class OpBinder {
 public:
  OpBinder(const plan::Op& op, const OpSetting& setting, ArgumentRoom& room)
      : kind_(op.kind),
        setting_(setting),
        room_(room),
        sizes_(op),
        precision_(tensor::precision_of(room.device())) {}

  BoundOp bind();

 private:
  tensor::TensorView activation(const tensor::Shape& shape) {
    return room_.random(activation_dtype(), shape);
  }
  tensor::TensorView weight(const tensor::Shape& shape) { return room_.random(weight_dtype(), shape); }
  tensor::TensorView floats(const tensor::Shape& shape) {
    return room_.random(tensor::DType::Float32, shape);
  }
  tensor::TensorView activation_out(const tensor::Shape& shape) {
    return room_.output(activation_dtype(), shape);
  }
  tensor::TensorView floats_out(const tensor::Shape& shape) {
    return room_.output(tensor::DType::Float32, shape);
  }
  tensor::TensorView constant(std::int64_t size, float value) {
    return room_.of(std::vector<float>(static_cast<std::size_t>(size), value));
  }
  tensor::DType activation_dtype() const { return precision_.of(tensor::Role::Activation); }
  tensor::DType weight_dtype() const { return precision_.of(tensor::Role::Weight); }
  bool is_gpu() const { return room_.device() == tensor::Device::Cuda; }

  kernels::Dropout dropout(kernels::DropoutSite site) const {
    const double rate =
        site == kernels::DropoutSite::AttentionWeights ? setting_.attention_dropout : setting_.hidden_dropout;
    return {.threshold = kernels::dropout_threshold(rate), .site = site};
  }
  kernels::RowIdentities identities();

  BoundOp product_forward();
  BoundOp product_input_gradient();
  BoundOp product_weight_gradient();
  BoundOp mlp_forward();
  BoundOp mlp_input_gradient();
  BoundOp attention();
  BoundOp vocabulary_forward();
  BoundOp vocabulary_backward();
  BoundOp norm_forward();
  BoundOp norm_backward();
  BoundOp embedding();
  BoundOp activation_function();
  BoundOp column_sums();
  BoundOp gather();
  BoundOp fill();
  BoundOp update();
  BoundOp square_gradient();
  BoundOp second_moment();
  BoundOp inverse();
  BoundOp precondition();
  BoundOp orthonormalise();
  tensor::TensorView positive_matrix(std::int64_t size);
  tensor::TensorView inverse_state();

  plan::OpKind kind_;
  OpSetting setting_;
  ArgumentRoom& room_;
  OpSizes sizes_;
  tensor::Precision precision_;
};

}  // namespace plenum::calibrate
