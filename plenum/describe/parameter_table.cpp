#include "plenum/describe/parameter_table.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/batch/label_counts.h"

namespace plenum::describe {
namespace {

// 256 bytes where elements have 2: a GPU reads lines of 128, and a product whose weights begin within one
// takes longer.
constexpr std::int64_t kAlignedElements = 128;
// Their bytes can still be counted. Every size alone is bounded where a model is described, their product is
// not.
constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

}  // namespace

tensor::Shape Parameter::whole_shape() const {
  if (!slice) return shape;
  std::array<std::int64_t, tensor::Shape::kMaxDims> sizes{};
  std::copy(shape.sizes().begin(), shape.sizes().end(), sizes.begin());
  sizes[*split_dim] = slice->whole;
  return tensor::Shape(std::span<const std::int64_t>(sizes.data(), shape.num_dims()));
}

bool is_hidden_matrix(const Parameter& parameter) {
  return parameter.part == ModelPart::Layer && parameter.kind == ParameterKind::MapWeight;
}

void for_each_run(const Parameter& parameter,
                  base::FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> visit) {
  if (!parameter.slice) return visit(0, 0, parameter.num_elements());
  const std::span<const std::int64_t> sizes = parameter.shape.sizes();
  const std::size_t dim = *parameter.split_dim;
  const auto product = [&](std::size_t from, std::size_t end) {
    std::int64_t count = 1;
    for (std::size_t i = from; i < end; ++i) count *= sizes[i];
    return count;
  };
  const std::int64_t behind = product(dim + 1, sizes.size());
  const std::int64_t count = sizes[dim] * behind;
  for (std::int64_t i = 0; i < product(0, dim); ++i) {
    visit((i * parameter.slice->whole + parameter.slice->begin) * behind, i * count, count);
  }
}

ParameterTable::ParameterTable(ModelDescription model) : ParameterTable(std::move(model), {}) {}

ParameterTable::ParameterTable(ModelDescription model, std::vector<LayerRange> held)
    : model_(std::move(model)), held_(std::move(held)) {
  const std::size_t num_layers = model_.layers.size();
  base::check(num_layers > 0, "a model needs a layer");
  base::check(model_.heads.size() <= batch::kMostObjectives, "a model has too many objectives: {}",
              model_.heads.size());
  if (held_.empty()) held_.push_back(all_layers());
  std::ranges::sort(held_, std::greater<>());
  layer_begin_.resize(num_layers);
  current_layer_ = base::LayerId::at(num_layers - 1);
  for (current_index_ = holds_last() ? model_.heads.size() : 0; current_index_-- > 0;) {
    add_head(model_.heads[current_index_]);
  }
  current_part_ = ModelPart::Layer;
  for (std::size_t layer = num_layers; layer-- > 0;) {
    current_index_ = layer;
    current_layer_ = base::LayerId::at(layer);
    const bool is_last = layer + 1 == num_layers;
    layer_begin_[layer] = is_last ? 0 : num_elements_;
    if (!holds(current_layer_)) continue;
    if (is_last) add_norm(model_.final_norm);
    add_layer(model_.layers[layer]);
  }
  current_part_ = ModelPart::Embedding;
  if (holds_first()) add_embedding(model_.embedding);
  first_layer_end_ = num_elements_;
  if (!holds_first() && holds_last() && has_tied_head()) add_table(model_.embedding.words);
}

bool ParameterTable::holds(base::LayerId layer) const {
  return std::ranges::any_of(
      held_, [&](const LayerRange& range) { return range.first <= layer && layer < range.second; });
}

void ParameterTable::add(Parameter parameter, Gap behind) {
  base::require(parameter.num_elements() <= kMostElements - num_elements_,
                "the model has too many parameters, make it narrower or shallower: more than {}",
                kMostElements);
  parameter.part = current_part_;
  parameter.part_index = current_index_;
  parameter.layer = current_layer_;
  parameter.begin = num_elements_;
  num_elements_ = parameter.end();
  if (behind == Gap::Aligned)
    num_elements_ = (num_elements_ + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
  const bool is_new = index_by_name_.emplace(parameter.name, parameters_.size()).second;
  base::check(is_new, "a model has two parameters {}", parameter.name);
  parameters_.push_back(std::move(parameter));
}

void ParameterTable::add_weight(const LinearMap& map, Gap behind) {
  if (map.is_tied) return;
  add({.name = map.weight,
       .shape = {map.out_width, map.in_width},
       .kind = ParameterKind::MapWeight,
       .deviation = map.deviation,
       .zero_row = {},
       .is_decayed = map.is_decayed,
       .split_dim = map.split_dim,
       .slice = map.slice,
       .layer = {}},
      behind);
}

void ParameterTable::add_bias(const LinearMap& map, Gap behind) {
  if (!map.has_bias()) return;
  const bool is_divided = map.split_dim == std::size_t{0};
  add({.name = map.bias,
       .shape = {map.out_width},
       .kind = ParameterKind::MapBias,
       .zero_row = {},
       .split_dim = is_divided ? map.split_dim : std::nullopt,
       .slice = is_divided ? map.slice : std::nullopt,
       .layer = {}},
      behind);
}

void ParameterTable::add_map(const LinearMap& map) {
  add_weight(map);
  add_bias(map);
}

void ParameterTable::add_together(const std::vector<LinearMap>& maps) {
  const auto behind = [&](const LinearMap& map) { return &map == &maps.back() ? Gap::Aligned : Gap::None; };
  for (const LinearMap& map : maps) add_weight(map, behind(map));
  for (const LinearMap& map : maps) add_bias(map, behind(map));
}

void ParameterTable::add_norm(const std::optional<Norm>& norm) {
  if (!norm) return;
  add({.name = norm->weight,
       .shape = {norm->width},
       .kind = ParameterKind::NormWeight,
       .zero_row = {},
       .split_dim = {},
       .layer = {}});
  if (!norm->has_bias()) return;
  add({.name = norm->bias,
       .shape = {norm->width},
       .kind = ParameterKind::NormBias,
       .zero_row = {},
       .split_dim = {},
       .layer = {}});
}

// What comes last in forward comes first: its gradient is complete first.

void ParameterTable::add_head(const Head& head) {
  add_map(head.output);
  add_norm(head.norm);
  if (head.transform) add_map(*head.transform);
}

void ParameterTable::add_layer(const Layer& layer) {
  const bool is_post = layer.norm_position == NormPosition::Post;
  if (is_post) add_norm(layer.mlp.norm);
  add_map(layer.mlp.out);
  add_map(layer.mlp.in);
  add_norm(is_post ? layer.attention.norm : layer.mlp.norm);
  add_map(layer.attention.output);
  add_together(layer.attention.projections);
  if (!is_post) add_norm(layer.attention.norm);
}

void ParameterTable::add_embedding(const Embedding& embedding) {
  add_norm(embedding.norm);
  std::vector<const Table*> tables = embedding.tables();
  std::reverse(tables.begin(), tables.end());
  for (const Table* table : tables) add_table(*table);
}

void ParameterTable::add_table(const Table& table) {
  add({.name = table.weight,
       .shape = {table.num_rows, table.width},
       .kind = ParameterKind::Table,
       .deviation = table.deviation,
       .zero_row = table.zero_row,
       .is_decayed = table.is_decayed,
       .split_dim = table.split_dim,
       .slice = table.slice,
       .layer = {}});
}

std::size_t ParameterTable::index_of(std::string_view name) const {
  const auto found = index_by_name_.find(name);
  base::check(found != index_by_name_.end(), "the model has no parameter {}", name);
  return found->second;
}

bool ParameterTable::has_tied_head() const {
  return std::ranges::any_of(model_.heads, [](const Head& head) { return head.output.is_tied; });
}

const Parameter* ParameterTable::tied() const {
  return has_tied_head() && (holds_first() || holds_last()) ? &parameters_.back() : nullptr;
}

std::int64_t ParameterTable::num_parameters() const {
  return std::accumulate(
      parameters_.begin(), parameters_.end(), std::int64_t{0},
      [](std::int64_t sum, const Parameter& parameter) { return sum + parameter.num_elements(); });
}

ParameterTable::ElementRange ParameterTable::elements_of_layers(base::LayerId first,
                                                                base::LayerId end) const {
  base::check(first < end && end.index() <= layer_begin_.size(), "the model has no layers [{}, {})",
              first.value, end.value);
  return {layer_begin_[end.index() - 1],
          first.index() == 0 ? first_layer_end_ : layer_begin_[first.index() - 1]};
}

}  // namespace plenum::describe
