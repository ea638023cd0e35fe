#include "plenum/train/whole_model.h"

#include <algorithm>
#include <numeric>

#include "plenum/base/check.h"
#include "plenum/describe/bert.h"
#include "plenum/describe/tensor_parallel.h"

namespace plenum::train {

std::size_t WholeModel::num_bytes(const describe::ModelConfig& model) {
  const describe::ParameterTable table(describe::describe_bert(model));
  return static_cast<std::size_t>(table.num_elements()) * sizeof(float);
}

std::size_t WholeModel::num_bytes_on_the_way(const describe::ModelConfig& model, std::size_t num_slices,
                                             std::span<const describe::ParameterShard::LayerRange> buckets) {
  const describe::ModelDescription whole = describe::describe_bert(model);
  std::vector<std::int64_t> sizes(buckets.size());
  for (std::size_t slice = 0; slice < num_slices; ++slice) {
    const describe::ParameterTable table(
        describe::tensor_parallel_slice(whole, {.index = slice, .size = num_slices}));
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto [begin, end] = table.elements_of_layers(buckets[i].first, buckets[i].second);
      sizes[i] += end - begin;
    }
  }
  return static_cast<std::size_t>(std::ranges::max(sizes)) * sizeof(float);
}

std::vector<describe::ParameterShard::LayerRange> WholeModel::single_layers(std::size_t num_layers) {
  std::vector<describe::ParameterShard::LayerRange> layers;
  for (std::size_t i = 0; i < num_layers; ++i)
    layers.emplace_back(base::LayerId::at(i), base::LayerId::at(i + 1));
  return layers;
}

WholeModel::WholeModel(const describe::ModelConfig& model, std::size_t num_slices)
    : table_(describe::describe_bert(model)),
      weights_(static_cast<std::size_t>(table_.num_elements())),
      weights_N_(weights_.data(), {table_.num_elements()}) {
  for (std::size_t i = 0; i < num_slices; ++i)
    slices_.emplace_back(describe::tensor_parallel_slice(table_.model(), {.index = i, .size = num_slices}));
}

void WholeModel::scatter(std::size_t slice, const model::FlatPiece& part) const {
  std::vector<model::FlatPiece> pieces;
  add_pieces(slice, part, Which::Divided, pieces);
  add_pieces(slice, part, Which::Alike, pieces);
  for (const model::FlatPiece& piece : pieces)
    std::copy_n(weights_.data() + piece.begin, piece.values.size(), piece.values.data());
}

void WholeModel::gather(std::size_t slice, const model::FlatPiece& part) {
  std::vector<model::FlatPiece> pieces;
  add_pieces(slice, part, Which::Divided, pieces);
  if (slice == 0) add_pieces(slice, part, Which::Alike, pieces);
  for (const model::FlatPiece& piece : pieces) std::ranges::copy(piece.values, weights_.data() + piece.begin);
}

void WholeModel::gather(std::span<const float> own, std::span<const Holding> holdings,
                        comm::Communicator& group) {
  base::check(group.size() == holdings.size(), "{} ranks hold the model together: {}", holdings.size(),
              group.size());
  std::vector<float> values;  // of one bucket, of one rank behind another
  std::vector<std::size_t> counts(group.size());
  const std::size_t num_buckets = holdings.front().shard.buckets().size();
  for (std::size_t i = 0; i < num_buckets; ++i) {
    const auto of = [&](std::size_t rank) { return holdings[rank].shard.buckets()[i]; };
    for (std::size_t rank = 0; rank < counts.size(); ++rank)
      counts[rank] = static_cast<std::size_t>(of(rank).num_own());
    values.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
    const std::span<const float> part =
        own.subspan(static_cast<std::size_t>(of(group.index()).begin), counts[group.index()]);
    group.start_all_gather(comm::elements_of(part), comm::elements_of(std::span(values)), counts, i).wait();
    std::span<float> rest(values);
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      gather(holdings[rank].slice, {of(rank).own.begin, rest.first(counts[rank])});
      rest = rest.subspan(counts[rank]);
    }
  }
}

void WholeModel::add_pieces(std::size_t slice, const model::FlatPiece& part, Which which,
                            std::vector<model::FlatPiece>& pieces) const {
  const describe::ParameterTable& table = slices_[slice];
  const std::int64_t part_end = part.begin + std::ssize(part.values);
  for (std::size_t i = 0; i < table.parameters().size(); ++i) {
    if ((which == Which::Divided) != table[i].slice.has_value()) continue;
    if (table[i].begin >= part_end || table[i].end() <= part.begin) continue;
    for_each_run(table[i], [&](std::int64_t first, std::int64_t own, std::int64_t count) {
      const std::int64_t begin = std::max(table[i].begin + own, part.begin);
      const std::int64_t end = std::min(table[i].begin + own + count, part_end);
      if (begin >= end) return;
      pieces.push_back({table_[i].begin + first + begin - (table[i].begin + own),
                        part.values.subspan(static_cast<std::size_t>(begin - part.begin),
                                            static_cast<std::size_t>(end - begin))});
    });
  }
}

}  // namespace plenum::train
