#include "plenum/describe/parameter_shard.h"

#include <algorithm>

#include "plenum/base/check.h"
#include "plenum/describe/counted_elements.h"

namespace plenum::describe {

ParameterShard::ParameterShard(const ParameterTable& table) {
  for (const LayerRange& layers : table.held())
    add(layers, table.elements_of_layers(layers.first, layers.second), 0, 1);
  const std::int64_t end = buckets_.back().elements.end;
  if (end < table.num_elements()) add(table.held().front(), {end, table.num_elements()}, 0, 1);
}

ParameterShard::ParameterShard(const ParameterTable& table, std::span<const LayerRange> buckets,
                               std::size_t holder_index, std::size_t num_holders, TiedTable tied) {
  std::vector<LayerRange> sorted(buckets.begin(), buckets.end());
  std::ranges::sort(sorted, std::greater<>());
  std::int64_t end = 0;
  for (const LayerRange& layers : sorted) {
    const ElementRange elements = table.elements_of_layers(layers.first, layers.second);
    base::check(elements.begin == end, "buckets must hold every layer once: one begins at element {}",
                elements.begin);
    end = elements.end;
    if (tied == TiedTable::Apart && end == table.num_elements()) {
      add(layers, {elements.begin, table.tied()->begin}, holder_index, num_holders);
      add(layers, {table.tied()->begin, end}, holder_index, num_holders);
    } else {
      add(layers, elements, holder_index, num_holders);
    }
  }
  base::check(end == table.num_elements(), "buckets must hold every layer: {} of {} elements", end,
              table.num_elements());
}

void ParameterShard::add(const LayerRange& layers, const ElementRange& elements, std::size_t holder_index,
                         std::size_t num_holders) {
  Bucket bucket{.layers = layers, .elements = elements, .counts = {}, .own = {}};
  for (std::size_t holder = 0; holder < num_holders; ++holder) {
    const ElementRange part = counted_elements(elements, holder, num_holders);
    bucket.counts.push_back(static_cast<std::size_t>(part.end - part.begin));
  }
  bucket.own = counted_elements(elements, holder_index, num_holders);
  bucket.begin = num_elements_;
  num_elements_ += bucket.num_own();
  buckets_.push_back(std::move(bucket));
}

const ParameterShard::Bucket& ParameterShard::bucket(base::LayerId first, base::LayerId end) const {
  const auto found = std::ranges::find(buckets_, LayerRange(first, end), &Bucket::layers);
  base::check(found != buckets_.end(), "no bucket holds the layers [{}, {}) alone", first.value, end.value);
  return *found;
}

}  // namespace plenum::describe
