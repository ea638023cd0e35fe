#include "plenum/model/zero_gradients.h"

#include <vector>

#include "plenum/kernels/zero_all.h"

namespace plenum::model {

using tensor::TensorView;

void zero_gradients(const Pass& pass, const BertGradients& gradients, MapGradients map_gradients,
                    base::LayerId first, base::LayerId end) {
  std::vector<TensorView> zeros;
  const auto add = [&](const PartGradients& part, bool is_computed) {
    zeros.insert(zeros.end(), part.added_to.begin(), part.added_to.end());
    if (!is_computed) zeros.insert(zeros.end(), part.overwritten.begin(), part.overwritten.end());
  };
  if (end.index() == gradients.of_layers.size()) {
    for (std::size_t i = 0; i < gradients.of_heads.size(); ++i) {
      add(gradients.of_heads[i], pass.num_labels(i) > 0);
    }
  }
  for (std::size_t layer = first.index(); layer < end.index(); ++layer) {
    add(gradients.of_layers[layer], map_gradients == MapGradients::Later || pass.num_read() > 0);
  }
  if (first.index() == 0) add(gradients.of_embedding, pass.num_read() > 0);
  kernels::zero_all(pass.stream, zeros);
}

void zero_map_gradients(const Pass& pass, const BertGradients& gradients, base::LayerId first,
                        base::LayerId end) {
  if (pass.num_read() > 0) return;
  std::vector<TensorView> zeros;
  for (std::size_t layer = first.index(); layer < end.index(); ++layer) {
    const std::vector<TensorView>& weights = gradients.of_layers[layer].overwritten;
    zeros.insert(zeros.end(), weights.begin(), weights.end());
  }
  kernels::zero_all(pass.stream, zeros);
}

}  // namespace plenum::model
