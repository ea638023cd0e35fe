#pragma once

#include <cstddef>
#include <cstdint>

#include "plenum/describe/parameter_table.h"

namespace plenum::plan {

/// What ranks reduce at a time if nobody says otherwise: enough that a network is busy and little that is
/// left when backward has ended.
inline constexpr std::int64_t kBucketBytes = 25'000'000;

/// Into how many ranges of layers the gradients of a model are cut so that none is larger than `bucket_bytes`
/// or a layer. Heads and embeddings, which go with the last and the first layer, are not counted.
std::size_t num_gradient_buckets(const describe::ParameterTable& table, std::int64_t bucket_bytes);

}  // namespace plenum::plan
