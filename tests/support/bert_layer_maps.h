#pragma once

#include <vector>

#include "plenum/describe/bert.h"
#include "plenum/schedule/simulate/factor_shares.h"

namespace plenum::test {

/// The linear maps of a BERT layer that have factors, as the model's description has them: query, key, value,
/// attention output, feed-forward in and out.
inline std::vector<schedule::LinearMap> bert_layer_maps() {
  const describe::ModelDescription model = describe::describe_bert(describe::preset("bert-base"));
  std::vector<schedule::LinearMap> maps;
  for (const describe::FactorShape& shape : describe::factor_shapes(model.layers.front())) {
    maps.push_back({static_cast<double>(shape.in_width), static_cast<double>(shape.out_width)});
  }
  return maps;
}

}  // namespace plenum::test
