#include "plenum/train/model_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plenum/describe/bert.h"
#include "plenum/describe/tensor_parallel.h"
#include "plenum/memory/schedule_shard.h"

namespace plenum::train {

ModelParts::ModelParts(const describe::ModelConfig& model, const Mesh& mesh,
                       const schedule::Schedule& schedule)
    : mesh_(mesh), whole_(describe::describe_bert(model)) {
  // Ranks that have the same of a parameter: by its index, and by the begin of its slice where it has one.
  std::map<std::pair<std::size_t, std::int64_t>, std::size_t> num_holders;
  const auto key_of = [](std::size_t index, const describe::Parameter& parameter) {
    return std::pair(index, parameter.slice ? parameter.slice->begin : 0);
  };
  for (std::size_t i = 0; i < mesh.ranks_per_replica(); ++i) {
    const base::Rank rank = base::Rank::at(i);
    Part part{.table = describe::ParameterTable(
                  describe::tensor_parallel_slice(whole_.model(), mesh.slice_of(rank)),
                  memory::held_layers(schedule, mesh.place_of(rank)))};
    for (const describe::Parameter& parameter : part.table.parameters()) {
      const std::size_t index = whole_.index_of(parameter.name);
      part.in_whole.push_back(index);
      part.holders.push_back({.index = num_holders[key_of(index, parameter)]++});
    }
    parts_.push_back(std::move(part));
  }
  for (Part& part : parts_) {
    for (std::size_t i = 0; i < part.in_whole.size(); ++i)
      part.holders[i].count = num_holders.at(key_of(part.in_whole[i], part.table[i]));
  }
}

bool ModelParts::is_first_with(base::Rank rank, base::LayerId layer) const {
  const base::LayerId end = base::LayerId::at(layer.index() + 1);
  const auto has_layer = [&](std::size_t index) {
    const auto [first, last] = parts_[index].table.elements_of_layers(layer, end);
    return first < last;
  };
  const std::size_t own = mesh_.index_in_replica(rank);
  std::size_t first = own % mesh_.num_slices();
  while (first < own && !has_layer(first)) first += mesh_.num_slices();
  return first == own && has_layer(own);
}

void ModelParts::for_each_piece(base::Rank rank, const model::FlatPiece& piece,
                                base::FunctionRef<void(const model::FlatPiece&)> visit) const {
  const Part& part = parts_[mesh_.index_in_replica(rank)];
  const std::int64_t piece_end = piece.begin + std::ssize(piece.values);
  for (std::size_t i = 0; i < part.in_whole.size(); ++i) {
    const describe::Parameter& parameter = part.table[i];
    if (parameter.begin >= piece_end || parameter.end() <= piece.begin) continue;
    const std::int64_t in_whole = whole_[part.in_whole[i]].begin;
    for_each_run(parameter, [&](std::int64_t first, std::int64_t own, std::int64_t count) {
      const std::int64_t begin = std::max(parameter.begin + own, piece.begin);
      const std::int64_t end = std::min(parameter.begin + own + count, piece_end);
      if (begin >= end) return;
      visit({in_whole + first + begin - (parameter.begin + own),
             piece.values.subspan(static_cast<std::size_t>(begin - piece.begin),
                                  static_cast<std::size_t>(end - begin))});
    });
  }
}

}  // namespace plenum::train
