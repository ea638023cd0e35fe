#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "plenum/describe/model_description.h"

namespace plenum::test {

/// Multiplications and additions of the products of a training step, counted one by one where a naive encoder
/// does them: sequence by sequence, row by row.
class CountedEncoder {
 public:
  CountedEncoder(const describe::ModelDescription& model, std::vector<std::int32_t> lengths,
                 std::vector<std::int64_t> labels)
      : model_(model), lengths_(std::move(lengths)), labels_(std::move(labels)) {
    for (const std::int32_t length : lengths_) tokens_ += length;
    for (const std::int64_t count : labels_) read_ += count;
  }

  double forward() {
    count_ = 0;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const describe::Layer& layer = model_.layers[i];
      for (const describe::LinearMap& map : layer.attention.projections) product(tokens_, map);
      scores(layer.attention);  // Q K^T
      scores(layer.attention);  // P V
      const std::int64_t behind = rows_behind(i);
      product(behind, layer.attention.output);
      product(behind, layer.mlp.in);
      product(behind, layer.mlp.out);
    }
    for (std::size_t i = 0; i < model_.heads.size(); ++i) {
      for (const describe::LinearMap* map : model_.heads[i].maps()) product(labels_[i], *map);
    }
    return count_;
  }

  double backward() {
    count_ = 0;
    for (std::size_t i = 0; i < model_.heads.size(); ++i) {
      for (const describe::LinearMap* map : model_.heads[i].maps()) gradients(labels_[i], *map);
    }
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      const describe::Layer& layer = model_.layers[i];
      const std::int64_t behind = rows_behind(i);
      gradients(behind, layer.mlp.out);
      gradients(behind, layer.mlp.in);
      gradients(behind, layer.attention.output);
      for (int product = 0; product < 5; ++product) scores(layer.attention);  // P again, dP, dQ, dK, dV
      for (const describe::LinearMap& map : layer.attention.projections) gradients(tokens_, map);
    }
    return count_;
  }

  std::int64_t tokens() const { return tokens_; }

 private:
  std::int64_t rows_behind(std::size_t layer) const {
    return layer + 1 == model_.layers.size() ? read_ : tokens_;
  }

  /// y = x W^T.
  void product(std::int64_t rows, const describe::LinearMap& map) {
    for (std::int64_t t = 0; t < rows; ++t) {
      for (std::int64_t e = 0; e < map.out_width; ++e) {
        for (std::int64_t d = 0; d < map.in_width; ++d) multiply_and_add();
      }
    }
  }
  /// dx = dy W and dW = dy^T x.
  void gradients(std::int64_t rows, const describe::LinearMap& map) {
    product(rows, map);
    product(rows, map);
  }
  /// A product with an entry for each pair of a query and a key that a head reads.
  void scores(const describe::Attention& attention) {
    for (const std::int32_t length : lengths_) {
      for (std::int64_t head = 0; head < attention.num_heads; ++head) {
        for (std::int64_t query = 0; query < length; ++query) {
          for (std::int64_t key = 0; key < length; ++key) {
            if (attention.window && std::abs(query - key) > *attention.window) continue;
            for (std::int64_t k = 0; k < attention.head_width; ++k) multiply_and_add();
          }
        }
      }
    }
  }
  void multiply_and_add() { count_ += 2; }

  const describe::ModelDescription& model_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> labels_;
  std::int64_t tokens_ = 0;
  std::int64_t read_ = 0;
  double count_ = 0;
};

}  // namespace plenum::test
