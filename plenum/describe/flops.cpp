#include "plenum/describe/flops.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::describe {
namespace {

double of_map(const LinearMap& map) {
  return 2 * static_cast<double>(map.in_width) * static_cast<double>(map.out_width);
}

}  // namespace

Flops::Flops(const ModelDescription& model) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    double projections = 0;
    for (const LinearMap& projection : layer.attention.projections) projections += of_map(projection);
    of_token_ += projections;
    const double behind = of_map(layer.attention.output) + of_map(layer.mlp.in) + of_map(layer.mlp.out);
    (i + 1 == model.layers.size() ? of_read_row_ : of_token_) += behind;
    const double of_pair = 4 * static_cast<double>(layer.attention.width());
    layers_.push_back({.projections = projections, .behind_attention = behind, .of_pair = of_pair});
    if (!layer.attention.window) {
      of_pair_ += of_pair;
      continue;
    }
    auto same = std::ranges::find(windowed_, *layer.attention.window, &WindowedAttention::window);
    if (same == windowed_.end()) same = windowed_.insert(same, {.window = *layer.attention.window});
    same->of_pair += of_pair;
  }
  for (const Head& head : model.heads) {
    double& flops = of_label_.emplace_back(0);
    for (const LinearMap* map : head.maps()) flops += of_map(*map);
  }
}

double Flops::forward(const batch::Work& work) const {
  base::check(windowed_.empty(), "attention with windows needs the lengths of sequences");
  return outside_windows(work);
}

double Flops::forward(const batch::Work& work, std::span<const std::int32_t> lengths) const {
  double flops = outside_windows(work);
  for (const WindowedAttention& attention : windowed_) {
    for (const std::int32_t length : lengths) {
      flops += attention.of_pair * static_cast<double>(attended_pairs(length, attention.window));
    }
  }
  return flops;
}

std::vector<double> Flops::forward_of_layers(const batch::Work& work) const {
  base::check(windowed_.empty(), "attention with windows needs the lengths of sequences");
  std::vector<double> flops;
  const auto tokens = static_cast<double>(work.tokens);
  for (const LayerFlops& layer : layers_) {
    const bool is_last = flops.size() + 1 == layers_.size();
    flops.push_back(tokens * (layer.projections + (is_last ? 0 : layer.behind_attention)) +
                    static_cast<double>(work.squared_lengths) * layer.of_pair);
  }
  for (std::size_t i = 0; i < of_label_.size(); ++i)
    flops.back() += static_cast<double>(work.labels[i]) * (of_read_row_ + of_label_[i]);
  return flops;
}

double Flops::outside_windows(const batch::Work& work) const {
  double flops =
      static_cast<double>(work.tokens) * of_token_ + static_cast<double>(work.squared_lengths) * of_pair_;
  for (std::size_t i = 0; i < of_label_.size(); ++i) {
    flops += static_cast<double>(work.labels[i]) * (of_read_row_ + of_label_[i]);
  }
  return flops;
}

}  // namespace plenum::describe
