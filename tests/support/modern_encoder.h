#pragma once

#include <string>

#include "plenum/describe/model_description.h"

namespace plenum::test {

struct ModernEncoderSize {
  std::int64_t vocabulary = 50368;
  std::int64_t width = 768;
  std::int64_t num_layers = 22;
  std::int64_t num_heads = 12;
  std::int64_t mlp_width = 1152;
};

/// A model like ModernBERT (Warner et al., 2024), which is unlike BERT in all that a description can say:
/// norms before sublayers and none before the first attention, GeGLU, no biases but the decoder's, no tables
/// of positions and segments, and windows of 64 tokens to both sides in two of three layers.
inline describe::ModelDescription describe_modern_encoder(const ModernEncoderSize& size = {}) {
  using namespace describe;
  const std::int64_t D = size.width;
  const std::int64_t F = size.mlp_width;
  const auto map = [](const std::string& name, std::int64_t in_width, std::int64_t out_width,
                      std::int64_t num_parts = 1) {
    return LinearMap{.weight = name + ".weight",
                     .bias = "",
                     .in_width = in_width,
                     .out_width = out_width,
                     .num_parts = num_parts};
  };
  const auto norm = [&](const std::string& name) {
    return Norm{.weight = name + ".weight", .bias = "", .width = D};
  };
  ModelDescription model{.width = D,
                         .embedding = {.words = {.weight = "model.embeddings.tok_embeddings.weight",
                                                 .num_rows = size.vocabulary,
                                                 .width = D},
                                       .norm = norm("model.embeddings.norm")},
                         .layers = {},
                         .final_norm = norm("model.final_norm"),
                         .heads = {},
                         .norm_epsilon = 1e-5};
  for (std::int64_t i = 0; i < size.num_layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    Layer layer{.norm_position = NormPosition::Pre,
                .attention = {.num_heads = size.num_heads,
                              .head_width = D / size.num_heads,
                              .projections = {map(prefix + "attn.Wqkv", D, 3 * D, 3)},
                              .output = map(prefix + "attn.Wo", D, D),
                              .norm = norm(prefix + "attn_norm")},
                .mlp = {.kind = MlpKind::Geglu,
                        .in = map(prefix + "mlp.Wi", D, 2 * F, 2),
                        .out = map(prefix + "mlp.Wo", F, D),
                        .norm = norm(prefix + "mlp_norm")}};
    if (i % 3 != 0) layer.attention.window = 64;
    if (i == 0) layer.attention.norm.reset();
    model.layers.push_back(layer);
  }
  LinearMap decoder = map("", D, size.vocabulary);
  decoder.weight = model.embedding.words.weight;
  decoder.bias = "decoder.bias";
  decoder.is_tied = true;
  model.heads.push_back({.objective = masked_token_objective(size.vocabulary),
                         .transform = map("head.dense", D, D),
                         .norm = norm("head.norm"),
                         .output = decoder});
  return model;
}

}  // namespace plenum::test
