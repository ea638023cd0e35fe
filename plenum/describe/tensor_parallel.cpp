#include "plenum/describe/tensor_parallel.h"

#include <algorithm>
#include <string_view>

#include "plenum/base/check.h"

namespace plenum::describe {
namespace {

/// A rank's part of a dimension.
struct Range {
  std::int64_t begin;
  std::int64_t count;
};

Range range_of(const TensorParallel& place, std::int64_t whole, std::string_view what) {
  const auto size = static_cast<std::int64_t>(place.size);
  const auto index = static_cast<std::int64_t>(place.index);
  base::require(whole >= size, "--tp {} is more than the model has {} to divide: {}", size, what, whole);
  // Rows of products begin at multiples of 16 bytes then, whatever the type.
  constexpr std::int64_t kUnit = 8;
  const std::int64_t unit = whole >= kUnit * size ? kUnit : 1;
  const auto begin_of = [&](std::int64_t i) { return i == size ? whole : whole / unit * i / size * unit; };
  return {begin_of(index), begin_of(index + 1) - begin_of(index)};
}

void slice_rows(LinearMap& map, const Range& rows) {
  base::check(map.split_dim == std::size_t{0} && map.num_parts == 1, "{} is not divided by rows", map.weight);
  map.slice = {.begin = rows.begin, .whole = map.out_width};
  map.out_width = rows.count;
}

void slice_columns(LinearMap& map, const Range& columns) {
  base::check(map.split_dim == std::size_t{1} && map.num_parts == 1, "{} is not divided by columns",
              map.weight);
  map.slice = {.begin = columns.begin, .whole = map.in_width};
  map.in_width = columns.count;
}

void slice_attention(Attention& attention, const TensorParallel& place) {
  const auto size = static_cast<std::int64_t>(place.size);
  base::require(attention.num_heads % size == 0,
                "--tp must divide the number of attention heads, and {} does not divide {}", size,
                attention.num_heads);
  attention.num_heads /= size;
  attention.first_head = attention.num_heads * static_cast<std::int64_t>(place.index);
  const Range channels{attention.first_head * attention.head_width, attention.width()};
  for (LinearMap& projection : attention.projections) slice_rows(projection, channels);
  slice_columns(attention.output, channels);
}

void slice_mlp(Mlp& mlp, const TensorParallel& place) {
  base::check(mlp.kind == MlpKind::Gelu, "a gated MLP has two parts that must be divided alike");
  const Range inner = range_of(place, mlp.in.out_width, "inner width of the MLP");
  slice_rows(mlp.in, inner);
  slice_columns(mlp.out, inner);
}

}  // namespace

ModelDescription tensor_parallel_slice(ModelDescription model, const TensorParallel& place) {
  base::check(place.index < place.size, "a group of {} ranks has none with the index {}", place.size,
              place.index);
  if (!place.is_divided()) return model;
  model.tensor_parallel = place;
  const Range words = range_of(place, model.embedding.words.num_rows, "words");
  model.embedding.words.slice = {.begin = words.begin, .whole = model.embedding.words.num_rows};
  model.embedding.words.num_rows = words.count;
  for (Layer& layer : model.layers) {
    slice_attention(layer.attention, place);
    slice_mlp(layer.mlp, place);
  }
  for (Head& head : model.heads) {
    if (head.objective.loss == LossKind::WordCrossEntropy) slice_rows(head.output, words);
  }
  return model;
}

std::vector<ParameterTable::ElementRange> counted_by_slice(const ParameterTable& table,
                                                           const ParameterTable::ElementRange& range) {
  if (table.model().tensor_parallel.index == 0) return {range};
  std::vector<ParameterTable::ElementRange> counted;
  bool follows = false;  // the last part, with nothing but a gap between them
  for (const Parameter& parameter : table.parameters()) {
    const std::int64_t begin = std::max(parameter.begin, range.begin);
    const std::int64_t end = std::min(parameter.end(), range.end);
    if (begin >= end) continue;
    if (!parameter.slice) {
      follows = false;
    } else if (follows) {
      counted.back().end = end;
    } else {
      counted.push_back({begin, end});
      follows = true;
    }
  }
  return counted;
}

}  // namespace plenum::describe
