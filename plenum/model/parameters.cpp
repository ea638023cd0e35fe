#include "plenum/model/parameters.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::model {
namespace {

using describe::LinearMap;
using describe::ModelDescription;
using describe::Parameter;
using describe::ParameterTable;
using tensor::Shape;
using tensor::TensorView;

template <typename View>
View part_of(const View& flat_N, std::int64_t begin, Shape shape) {
  const std::size_t offset = static_cast<std::size_t>(begin) * tensor::size_of(flat_N.dtype());
  using Byte = typename View::template Pointer<std::byte>;
  return View(static_cast<Byte>(flat_N.raw()) + offset, flat_N.dtype(), shape);
}

/// A flat buffer with all elements of a table.
template <typename View>
class WholeBuffer {
 public:
  WholeBuffer(const ParameterTable& table, View flat_N) : flat_N_(flat_N) {
    base::check(flat_N.num_elements() == table.num_elements(),
                "a flat buffer must hold every parameter: {} of {} elements", flat_N.num_elements(),
                table.num_elements());
  }
  View part(std::int64_t begin, Shape shape) const { return part_of(flat_N_, begin, shape); }

 private:
  View flat_N_;
};

/// One that lies in parts.
class PartedBuffer {
 public:
  explicit PartedBuffer(const std::vector<FlatPart>& parts) : parts_(parts) {}

  TensorView part(std::int64_t begin, Shape shape) const {
    const auto found = std::ranges::find_if(parts_, [&](const FlatPart& candidate) {
      return candidate.elements.begin <= begin && begin < candidate.elements.end;
    });
    base::check(found != parts_.end() && begin + shape.num_elements() <= found->elements.end,
                "no part of a flat buffer holds the tensor that begins at element {}", begin);
    return part_of(found->values, begin - found->elements.begin, shape);
  }

 private:
  const std::vector<FlatPart>& parts_;
};

template <typename View, typename Buffer>
class Views {
 public:
  Views(const ParameterTable& table, const Buffer& exact_N, const Buffer& compute_N)
      : model_(table.model()), table_(table), exact_N_(exact_N), compute_N_(compute_N) {}

  BertParameters<View> all() const {
    BertParameters<View> parameters;
    if (table_.holds_first()) parameters.embedding = of_embedding(model_.embedding);
    parameters.layers.resize(model_.layers.size());
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      if (table_.holds(base::LayerId::at(i))) parameters.layers[i] = of_layer(model_.layers[i]);
    }
    parameters.heads.resize(model_.heads.size());
    for (std::size_t i = 0; table_.holds_last() && i < model_.heads.size(); ++i) {
      parameters.heads[i] = of_head(model_.heads[i]);
    }
    return parameters;
  }

 private:
  EmbeddingParameters<View> of_embedding(const describe::Embedding& embedding) const {
    return {.word_VD = of(embedding.words.weight),
            .position_PD = of(embedding.positions->weight),
            .segment_GD = of(embedding.segments->weight),
            .norm_weight_D = exact(embedding.norm->weight),
            .norm_bias_D = exact(embedding.norm->bias)};
  }

  HeadParameters<View> of_head(const describe::Head& head) const {
    return {.transform_weight = head.transform ? of(head.transform->weight) : View(),
            .transform_bias = head.transform ? of(head.transform->bias) : View(),
            .norm_weight = head.norm ? exact(head.norm->weight) : View(),
            .norm_bias = head.norm ? exact(head.norm->bias) : View(),
            .output_weight = of(head.output.weight),
            .output_bias = of(head.output.bias)};
  }

  EncoderLayerParameters<View> of_layer(const describe::Layer& layer) const {
    const describe::Attention& attention = layer.attention;
    const LinearMap& queries = attention.projections.front();
    const std::int64_t projected = attention.projected_width();
    return {.qkv_weight_3DD = of(queries.weight, {projected, queries.in_width}),
            .qkv_bias_3D = of(queries.bias, {projected}),
            .attention_output_weight_DD = of(attention.output.weight),
            .attention_output_bias_D = of(attention.output.bias),
            .attention_norm_weight_D = exact(attention.norm->weight),
            .attention_norm_bias_D = exact(attention.norm->bias),
            .intermediate_weight_FD = of(layer.mlp.in.weight),
            .intermediate_bias_F = of(layer.mlp.in.bias),
            .output_weight_DF = of(layer.mlp.out.weight),
            .output_bias_D = of(layer.mlp.out.bias),
            .output_norm_weight_D = exact(layer.mlp.norm->weight),
            .output_norm_bias_D = exact(layer.mlp.norm->bias)};
  }

  View exact(const std::string& name) const {
    const Parameter& parameter = table_.at(name);
    return exact_N_.part(parameter.begin, parameter.shape);
  }
  View of(const std::string& name) const { return of(name, table_.at(name).shape); }
  /// From the parameter's beginning on: what lies together may be one.
  View of(const std::string& name, Shape shape) const {
    return compute_N_.part(table_.at(name).begin, shape);
  }

  const ModelDescription& model_;
  const ParameterTable& table_;
  const Buffer& exact_N_;
  const Buffer& compute_N_;
};

/// Adds a parameter's gradient, as one with the last where it follows without a gap.
void append(std::vector<TensorView>& ranges, const TensorView& next) {
  if (!ranges.empty()) {
    TensorView& last = ranges.back();
    if (last.data<float>() + last.num_elements() == next.data<float>()) {
      last = {last.raw(), last.dtype(), {last.num_elements() + next.num_elements()}};
      return;
    }
  }
  ranges.push_back(next);
}

template <typename Buffer>
BertGradients gradients_in(const ParameterTable& table, const Buffer& flat_N) {
  const ModelDescription& model = table.model();
  BertGradients gradients{Views<TensorView, Buffer>(table, flat_N, flat_N).all(), {}, {}, {}};
  gradients.of_heads.resize(model.heads.size());
  gradients.of_layers.resize(model.layers.size());
  for (const Parameter& parameter : table.parameters()) {
    PartGradients& part =
        parameter.part == describe::ModelPart::Head    ? gradients.of_heads[parameter.part_index]
        : parameter.part == describe::ModelPart::Layer ? gradients.of_layers[parameter.part_index]
                                                       : gradients.of_embedding;
    if (&parameter == table.tied() && table.is_tied_apart()) continue;
    const TensorView elements = flat_N.part(parameter.begin, {parameter.num_elements()});
    const bool is_weight = parameter.kind == describe::ParameterKind::MapWeight;
    const auto tied = std::ranges::find_if(model.heads, [&](const describe::Head& head) {
      return head.output.is_tied && head.output.weight == parameter.name;
    });
    if (tied != model.heads.end()) {
      // The head's backward comes before the embedding's, which adds to it.
      append(gradients.of_heads[static_cast<std::size_t>(tied - model.heads.begin())].overwritten, elements);
    } else {
      append(is_weight ? part.overwritten : part.added_to, elements);
    }
  }
  return gradients;
}

}  // namespace

BertWeights weights_of(const ParameterTable& table, const FlatWeights& flat) {
  using View = tensor::ConstTensorView;
  using Buffer = WholeBuffer<View>;
  const Buffer exact_N(table, flat.exact_N);
  const Buffer compute_N(table, flat.compute_N);
  return Views<View, Buffer>(table, exact_N, compute_N).all();
}

BertWeights weights_of(const ParameterTable& table, const std::vector<FlatPart>& exact,
                       const std::vector<FlatPart>& compute) {
  return Views<tensor::ConstTensorView, PartedBuffer>(table, PartedBuffer(exact), PartedBuffer(compute))
      .all();
}

BertGradients gradients_of(const ParameterTable& table, TensorView flat_N) {
  return gradients_in(table, WholeBuffer<TensorView>(table, flat_N));
}

BertGradients gradients_of(const ParameterTable& table, const std::vector<FlatPart>& parts) {
  return gradients_in(table, PartedBuffer(parts));
}

}  // namespace plenum::model
