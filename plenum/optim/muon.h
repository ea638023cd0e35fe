#pragma once

#include <vector>

#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/muon_step.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::optim {

/// What Muon needs beside the flat buffers, borrowed.
struct MuonBuffers {
  tensor::TensorView room;            ///< workspace::newton_schulz_room(): of the compute type
  tensor::TensorView chunks_C8 = {};  ///< kernels::matrix_chunks(): written by begin(); needed on the GPU
};

/// Updates the weights of the maps of all layers by Muon. Other parameters are left alone.
class Muon {
 public:
  Muon(const describe::ParameterTable& table, double momentum, double decay, MuonBuffers buffers);

  /// To be called once, before the first step.
  void begin(const tensor::Stream& stream) const;
  /// `flat` says where weights, gradients and moments lie; the rest of it is filled in here.
  void step(const tensor::Stream& stream, kernels::MuonStep flat) const;
  /// The same of some matrices in two halves (kernels::muon_directions).
  void make_directions(const tensor::Stream& stream, kernels::MuonDirections flat) const;
  void update_weights(const tensor::Stream& stream, kernels::MuonWeights flat) const;

 private:
  std::vector<kernels::FlatMatrices> groups_;
  double momentum_;
  double decay_;
  MuonBuffers buffers_;
};

}  // namespace plenum::optim
