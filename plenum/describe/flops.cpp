#include "plenum/describe/flops.h"

namespace plenum::describe {
namespace {

double of_map(const LinearMap& map) {
  return 2 * static_cast<double>(map.in_width) * static_cast<double>(map.out_width);
}

}  // namespace

Flops::Flops(const ModelDescription& model) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    for (const LinearMap& projection : layer.attention.projections) of_token_ += of_map(projection);
    const double behind = of_map(layer.attention.output) + of_map(layer.mlp.in) + of_map(layer.mlp.out);
    (i + 1 == model.layers.size() ? of_read_row_ : of_token_) += behind;
    (layer.attention.window ? of_windowed_pair_ : of_pair_) +=
        4 * static_cast<double>(layer.attention.width());
  }
  for (const Head& head : model.heads) of_label_.push_back(of_map(head.transform) + of_map(head.output));
}

double Flops::forward(const batch::Work& work) const {
  double flops = static_cast<double>(work.tokens) * of_token_ +
                 static_cast<double>(work.squared_lengths) * of_pair_ +
                 static_cast<double>(work.windowed_pairs) * of_windowed_pair_;
  for (std::size_t i = 0; i < of_label_.size(); ++i) {
    flops += static_cast<double>(work.labels[i]) * (of_read_row_ + of_label_[i]);
  }
  return flops;
}

}  // namespace plenum::describe
