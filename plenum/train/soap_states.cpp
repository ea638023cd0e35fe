#include "plenum/train/soap_states.h"

#include <cstddef>
#include <map>
#include <string>

#include "plenum/memory/hidden_matrices.h"

namespace plenum::train {

std::vector<StateTensor> soap_states(const describe::ParameterTable& whole, const optim::SoapOptions& options,
                                     std::span<const SoapRank> ranks) {
  std::vector<StateTensor> states;
  std::map<std::string, std::size_t> index_of;
  for (const optim::SoapTensor& tensor :
       optim::soap_tensors(whole, memory::hidden_matrices(whole), options)) {
    index_of[tensor.name] = states.size();
    states.push_back({.name = tensor.name,
                      .sizes = {tensor.size, tensor.size},
                      .values = {},
                      .writer = StateWriter::Other});
  }
  for (const SoapRank& rank : ranks) {
    for (const optim::SoapTensor& tensor : optim::soap_tensors(rank.table, rank.matrices, options)) {
      StateTensor& state = states[index_of.at(tensor.name)];
      const bool is_written = rank.is_written_by(tensor.parameter);
      if (!is_written && !state.values.empty()) continue;
      const auto count = static_cast<std::size_t>(tensor.size * tensor.size);
      state.values = rank.state.span<float>().subspan(static_cast<std::size_t>(tensor.begin), count);
      if (is_written) state.writer = StateWriter::This;
    }
  }
  return states;
}

}  // namespace plenum::train
