#include "plenum/pipeline/map_gather.h"

#include <algorithm>
#include <span>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/model/map_views.h"
#include "plenum/tensor/copy.h"

namespace plenum::pipeline {

using tensor::TensorView;

TensorView Wire::part(std::int64_t offset, const TensorView& like) const {
  return {memory.rows(offset, like.num_elements()).raw(), tensor::DType::Float32, like.shape()};
}

void Wire::copy(const tensor::ConstTensorView& from, const TensorView& to) const {
  if (queue) {
    tensor::copy(*queue, from, to);
  } else {
    // By the thread that communicates: all others compute meanwhile.
    std::ranges::copy(from.span<float>(), to.span<float>().begin());
  }
}

void Wire::set_zero(const TensorView& view) const {
  if (queue) {
    tensor::set_zero(*queue, view);
  } else {
    std::ranges::fill(view.span<float>(), 0.0F);
  }
}

MapGather::MapGather(const schedule::Schedule& schedule, schedule::Rank rank,
                     const describe::ModelDescription& model, const model::BertGradients& gradients,
                     Wire wire)
    : gradients_(gradients), wire_(std::move(wire)), of_layers_(model.layers.size()) {
  const schedule::Dataflow dataflow(schedule);
  for (const schedule::StageId stage : schedule.ranks[rank.index()].stages) {
    if (dataflow.holders(stage).size() == 1) continue;
    const std::size_t end = dataflow.layers().end(stage).index();
    for (std::size_t layer = dataflow.layers().first(stage).index(); layer < end; ++layer)
      of_layers_[layer] = layout_of(dataflow, rank, stage, layer, model);
  }
}

MapGather::Layout MapGather::layout_of(const schedule::Dataflow& dataflow, schedule::Rank rank,
                                       schedule::StageId stage, std::size_t layer,
                                       const describe::ModelDescription& model) {
  const std::vector<describe::FactorShape> shapes = factor_shapes(model.layers[layer]);
  const std::span<const schedule::Rank> holders = dataflow.holders(stage);
  Layout layout{.offsets = std::vector<std::int64_t>(shapes.size()),
                .is_own = std::vector<bool>(shapes.size()),
                .counts = std::vector<std::size_t>(holders.size())};
  std::int64_t offset = 0;
  for (std::size_t holder = 0; holder < holders.size(); ++holder) {
    for (std::uint16_t map = 0; map < shapes.size(); ++map) {
      if (dataflow.owner(stage, schedule::LayerId::at(layer), map) != holders[holder]) continue;
      const std::int64_t count = shapes[map].in_width * shapes[map].out_width;
      layout.offsets[map] = offset;
      layout.is_own[map] = holders[holder] == rank;
      layout.counts[holder] += static_cast<std::size_t>(count);
      offset += count;
    }
  }
  return layout;
}

PartitionedElements MapGather::to_partition(const ActionRun& run) const {
  const std::size_t layer = run.action.first_layer.index();
  base::check(layer + 1 == run.action.end_layer.index(), "gradients are gathered layer by layer");
  const Layout& layout = of_layers_[layer];
  std::int64_t total = 0;
  for (std::size_t map = 0; map < layout.offsets.size(); ++map) {
    const TensorView gradient = model::map_weight_gradient(gradients_.layers[layer], map);
    if (layout.is_own[map]) wire_.copy(gradient, wire_.part(layout.offsets[map], gradient));
    total += gradient.num_elements();
  }
  return {comm::elements_of(wire_.memory.first_rows(total).span<float>()), layout.counts};
}

void MapGather::communicated(const ActionRun& run) const {
  const std::size_t layer = run.action.first_layer.index();
  const Layout& layout = of_layers_[layer];
  for (std::size_t map = 0; map < layout.offsets.size(); ++map) {
    const TensorView gradient = model::map_weight_gradient(gradients_.layers[layer], map);
    if (!layout.is_own[map]) wire_.copy(wire_.part(layout.offsets[map], gradient), gradient);
  }
}

}  // namespace plenum::pipeline
