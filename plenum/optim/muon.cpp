#include "plenum/optim/muon.h"

#include "plenum/memory/hidden_matrices.h"
#include "plenum/tensor/copy.h"

namespace plenum::optim {

Muon::Muon(const describe::ParameterTable& table, double momentum, double decay, MuonBuffers buffers)
    : groups_(memory::hidden_matrices(table)), momentum_(momentum), decay_(decay), buffers_(buffers) {}

void Muon::begin(const tensor::Stream& stream) const {
  if (!buffers_.chunks_C8) return;
  const std::vector<std::int64_t> chunks = kernels::matrix_chunks(groups_);
  tensor::copy(stream, tensor::ConstTensorView(chunks.data(), buffers_.chunks_C8.shape()),
               buffers_.chunks_C8);
  stream.wait();
}

void Muon::step(const tensor::Stream& stream, kernels::MuonStep flat) const {
  flat.groups = groups_;
  flat.chunks_C8 = buffers_.chunks_C8;
  flat.room = buffers_.room;
  flat.momentum = momentum_;
  flat.decay = decay_;
  kernels::muon_step(stream, flat);
}

void Muon::make_directions(const tensor::Stream& stream, kernels::MuonDirections flat) const {
  flat.room = buffers_.room;
  flat.momentum = momentum_;
  kernels::muon_directions(stream, flat);
}

void Muon::update_weights(const tensor::Stream& stream, kernels::MuonWeights flat) const {
  flat.decay = decay_;
  kernels::muon_weights(stream, flat);
}

}  // namespace plenum::optim
