#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "plenum/describe/parameter_table.h"

namespace plenum::describe {

/// The parameters that one of several holders updates: all of them where there is one holder, else its part
/// of each bucket. What a holder keeps of its shard alone, such as moments, lies in buffers of
/// num_elements(): its parts of the buckets, one behind another.
class ParameterShard {
 public:
  using ElementRange = ParameterTable::ElementRange;
  using LayerRange = describe::LayerRange;

  /// Whether a tied word table is a bucket of its own, the last, or lies in that of the first layers.
  enum class TiedTable : std::uint8_t { InItsBucket, Apart };

  /// A part of the model whose gradients are reduced, and whose weights are gathered, by themselves.
  struct Bucket {
    LayerRange layers;
    ElementRange elements;            ///< of the flat buffers
    std::vector<std::size_t> counts;  ///< elements of each holder's part, in their order
    ElementRange own;                 ///< of the flat buffers: this holder's part
    std::int64_t begin = 0;           ///< of this holder's part in buffers of the shard

    std::int64_t num_own() const { return own.end - own.begin; }
  };

  /// Of the only holder: a bucket for each range of layers that it holds, and one for a tied word table that
  /// is none of these layers', which has the layers of its head.
  explicit ParameterShard(const ParameterTable& table);
  /// Throws InternalError unless the buckets hold every layer once.
  ParameterShard(const ParameterTable& table, std::span<const LayerRange> buckets, std::size_t holder_index,
                 std::size_t num_holders, TiedTable tied = TiedTable::InItsBucket);

  /// In the order of the flat buffers.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// That of these layers, without a tied table that is apart. Throws InternalError if there is none.
  const Bucket& bucket(base::LayerId first, base::LayerId end) const;
  std::int64_t num_elements() const { return num_elements_; }
  /// That of a tied word table, where it is apart.
  const Bucket& tied() const { return buckets_.back(); }
  bool is_whole() const { return buckets_.front().counts.size() == 1; }

 private:
  void add(const LayerRange& layers, const ElementRange& elements, std::size_t holder_index,
           std::size_t num_holders);

  std::vector<Bucket> buckets_;
  std::int64_t num_elements_ = 0;
};

}  // namespace plenum::describe
