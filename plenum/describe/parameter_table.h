#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plenum/base/function_ref.h"
#include "plenum/base/ids.h"
#include "plenum/describe/model_description.h"
#include "plenum/tensor/shape.h"

namespace plenum::describe {

/// What a parameter is to the part of the model that it belongs to.
enum class ParameterKind : std::uint8_t { MapWeight, MapBias, NormWeight, NormBias, Table };

/// Part of the model, for what concerns heads, layers or the embedding as a whole.
enum class ModelPart : std::uint8_t { Head, Layer, Embedding };

/// A logical tensor of the model, by its Hugging Face name, and its place in the flat buffers.
struct Parameter {
  std::string name;
  tensor::Shape shape;
  ParameterKind kind = ParameterKind::MapWeight;
  ModelPart part = ModelPart::Layer;
  std::size_t part_index = 0;  ///< of the head or layer
  double deviation = 0;        ///< it begins as normal numbers of it; 0: as zeros, a norm's weight as ones
  std::optional<std::int64_t> zero_row;  ///< of the whole tensor: begins as zeros all the same
  bool is_decayed = false;               ///< weights and embeddings; not biases and layer norms
  std::optional<std::size_t> split_dim;  ///< the dimension that tensor parallelism divides; none: replicated
  std::optional<Slice> slice = {};       ///< of it that the table's rank holds; none: all
  base::LayerId
      layer;  ///< whose backward completes its gradient: heads with the last, embeddings with the first
  std::int64_t begin = 0;  ///< first element in the flat buffers

  std::int64_t num_elements() const { return shape.num_elements(); }
  std::int64_t end() const { return begin + num_elements(); }
  /// Over all ranks: as it is written to files.
  tensor::Shape whole_shape() const;
};

/// Whether it is the weight of a linear map of a layer: neither of a head nor of the embedding.
bool is_hidden_matrix(const Parameter& parameter);

/// Calls visit(first of the whole tensor, first here, count) for each run of elements that lie together both
/// in the whole tensor and in what the table's rank holds of it.
void for_each_run(const Parameter& parameter,
                  base::FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> visit);

/// Layers [first, end).
using LayerRange = std::pair<base::LayerId, base::LayerId>;

/// All parameters of a model, or of the stages of it that a rank holds, in the order in which backward
/// completes their gradients: heads, the last layer to the first, embeddings. The flat buffers hold them in
/// this order, each tensor from a multiple of 128 elements on but for keys and values, which follow queries
/// without a gap. So the gradients of a range of layers are one range.
///
/// Layers that are not held have no elements; ids of layers are those of the whole model everywhere. Heads
/// are held with the last layer, the embedding with the first. A word table that a head shares is held with
/// either, and is the last parameter of all: with the first layer the end of its elements, without it no
/// layer's.
class ParameterTable {
 public:
  /// Throws UserError for a model that has too many parameters to count.
  explicit ParameterTable(ModelDescription model);
  /// Of some layers, as ranges without overlap in any order; none: all.
  ParameterTable(ModelDescription model, std::vector<LayerRange> held);

  const ModelDescription& model() const { return model_; }

  /// The layers that are held, from the last range to the first.
  const std::vector<LayerRange>& held() const { return held_; }
  bool holds(base::LayerId layer) const;
  bool holds_first() const { return holds({}); }
  bool holds_last() const { return holds(base::LayerId::at(model_.layers.size() - 1)); }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Parameter& operator[](std::size_t index) const { return parameters_[index]; }
  /// That of a name. Throws InternalError if there is none.
  std::size_t index_of(std::string_view name) const;
  const Parameter& at(std::string_view name) const { return parameters_[index_of(name)]; }
  /// The word table where a head shares it, the last parameter of all; null where none does or where it is
  /// not held.
  const Parameter* tied() const;
  /// Whether embedding and head are of different stages: then each adds its part to the gradient of a word
  /// table that they share, and none of them knows whether it is the first to do so.
  bool is_tied_apart() const { return tied() != nullptr && held_.front() != all_layers(); }

  /// Of what is held, as the model's authors count them.
  std::int64_t num_parameters() const;
  /// Of the flat buffers, with the gaps that align tensors.
  std::int64_t num_elements() const { return num_elements_; }

  /// The elements of the flat buffers whose gradients the backward of layers [first, end) completes.
  struct ElementRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  ElementRange elements_of_layers(base::LayerId first, base::LayerId end) const;

 private:
  /// Where the next parameter lies.
  enum class Gap : std::uint8_t { Aligned, None };

  void add(Parameter parameter, Gap behind = Gap::Aligned);
  void add_weight(const LinearMap& map, Gap behind = Gap::Aligned);
  void add_bias(const LinearMap& map, Gap behind = Gap::Aligned);
  void add_map(const LinearMap& map);
  void add_together(const std::vector<LinearMap>& maps);
  void add_norm(const std::optional<Norm>& norm);
  void add_head(const Head& head);
  void add_layer(const Layer& layer);
  void add_embedding(const Embedding& embedding);
  void add_table(const Table& table);
  LayerRange all_layers() const { return {{}, base::LayerId::at(model_.layers.size())}; }
  bool has_tied_head() const;

  ModelDescription model_;
  std::vector<LayerRange> held_;
  ModelPart current_part_ = ModelPart::Head;
  std::size_t current_index_ = 0;
  base::LayerId current_layer_;
  std::int64_t num_elements_ = 0;
  std::vector<Parameter> parameters_;
  std::map<std::string, std::size_t, std::less<>> index_by_name_;
  std::vector<std::int64_t> layer_begin_;  ///< of each layer's range, by layer
  std::int64_t first_layer_end_ = 0;
};

}  // namespace plenum::describe
