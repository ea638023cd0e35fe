#include "plenum/train/whole_model.h"

#include <algorithm>

#include "plenum/base/check.h"

namespace plenum::train {
namespace {

std::size_t size_of(const WholeModel::Holding::Round& round) {
  return static_cast<std::size_t>(round.elements.end - round.elements.begin);
}

}  // namespace

WholeModel::Holding WholeModel::Holding::of_part(const ModelParts& parts, base::Rank rank) {
  Holding holding{.rank = rank};
  for (std::size_t i = 0; i < parts.whole().model().layers.size(); ++i) {
    const base::LayerId layer = base::LayerId::at(i);
    Round& round = holding.rounds.emplace_back();
    if (!parts.is_first_with(rank, layer)) continue;
    round.elements = parts.part(rank).elements_of_layers(layer, base::LayerId::at(i + 1));
    round.begin = round.elements.begin;
  }
  return holding;
}

WholeModel::Holding WholeModel::Holding::of_shard(base::Rank rank, const describe::ParameterShard& shard) {
  Holding holding{.rank = rank};
  for (const describe::ParameterShard::Bucket& bucket : shard.buckets())
    holding.rounds.push_back({bucket.own, bucket.begin});
  return holding;
}

WholeModel::WholeModel(const ModelParts& parts)
    : parts_(parts),
      weights_(static_cast<std::size_t>(parts.whole().num_elements())),
      weights_N_(weights_.data(), {parts.whole().num_elements()}) {}

void WholeModel::scatter(base::Rank rank, const model::FlatPiece& piece) const {
  parts_.for_each_piece(rank, piece, [&](const model::FlatPiece& own) {
    std::copy_n(weights_.data() + own.begin, own.values.size(), own.values.data());
  });
}

void WholeModel::gather(base::Rank rank, const model::FlatPiece& piece) {
  parts_.for_each_piece(rank, piece, [&](const model::FlatPiece& own) {
    std::ranges::copy(own.values, weights_.data() + own.begin);
  });
}

void WholeModel::gather(std::span<const float> own, std::span<const Holding> holdings,
                        comm::Communicator& group) {
  base::check(group.size() == holdings.size(), "{} ranks hold the model together: {}", holdings.size(),
              group.size());
  const auto size_of_round = [&](std::size_t round) {
    std::size_t size = 0;
    for (const Holding& holding : holdings) size += size_of(holding.rounds[round]);
    return size;
  };
  std::size_t most = 0;
  for (std::size_t i = 0; i < holdings.front().rounds.size(); ++i) most = std::max(most, size_of_round(i));
  std::vector<float> values;  // of one round, of one rank behind another
  values.reserve(most);       // at once: one that grows is there twice
  std::vector<std::size_t> counts(group.size());
  for (std::size_t i = 0; i < holdings.front().rounds.size(); ++i) {
    for (std::size_t member = 0; member < counts.size(); ++member)
      counts[member] = size_of(holdings[member].rounds[i]);
    values.resize(size_of_round(i));
    const Holding::Round& mine = holdings[group.index()].rounds[i];
    const std::span<const float> part = own.subspan(static_cast<std::size_t>(mine.begin), size_of(mine));
    group.start_all_gather(comm::elements_of(part), comm::elements_of(std::span(values)), counts, i).wait();
    std::span<float> rest(values);
    for (std::size_t member = 0; member < counts.size(); ++member) {
      gather(holdings[member].rank, {holdings[member].rounds[i].elements.begin, rest.first(counts[member])});
      rest = rest.subspan(counts[member]);
    }
  }
}

}  // namespace plenum::train
