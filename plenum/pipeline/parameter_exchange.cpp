#include "plenum/pipeline/parameter_exchange.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/kernels/convert.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;
using tensor::TensorView;

ParameterExchange::ParameterExchange(const describe::ParameterTable& table,
                                     const describe::ParameterShard& shard, const memory::Holder& holder,
                                     const memory::RankMemory& memory, std::optional<tensor::Stream> queue)
    : table_(table), shard_(shard), memory_(memory), queue_(queue), wire_(memory.wire_B) {
  if (memory.tied_rows_RD) tied_rows_.emplace(*table.tied(), memory.tied_rows_RD, holder.index, holder.count);
}

describe::ParameterTable::ElementRange ParameterExchange::range_of(const Action& action) const {
  auto [begin, end] = table_.elements_of_layers(action.first_layer, action.end_layer);
  if (tied_rows_ || table_.is_tied_apart()) end = std::min(end, table_.tied()->begin);
  return {begin, end};
}

comm::Elements ParameterExchange::elements_of(const TensorView& flat_N, const Action& action) const {
  const auto [begin, end] = range_of(action);
  return comm::elements_of(flat_N.rows(begin, end - begin).span<float>());
}

TensorView ParameterExchange::bucket_of(const Action& action) const {
  const auto [begin, end] = range_of(action);
  return memory_.gradients_N.rows(begin, end - begin);
}

std::size_t ParameterExchange::bucket_index(const Action& action) const {
  return static_cast<std::size_t>(&shard_.bucket(action.first_layer, action.end_layer) -
                                  shard_.buckets().data());
}

comm::Elements ParameterExchange::to_reduce(const Action& action) const {
  if (action.type == ActionType::ReduceTiedOutput) return comm::elements_of(tied_gradient_VD().span<float>());
  if (action.type == ActionType::ReduceTied) {
    const TensorView sum = tied_rows_ ? tied_rows_->rows_RD() : tied_gradient_VD();
    return comm::elements_of(sum.span<float>());
  }
  if (wire_.is_used()) return wire_.pack(queue_, bucket_of(action));
  return elements_of(memory_.gradients_N, action);
}

PartitionedElements ParameterExchange::to_partition(const Action& action,
                                                    std::span<const batch::MicroBatch> own_micro_batches) {
  if (action.type == ActionType::GatherTiedRows) return tied_rows_->mark(own_micro_batches);
  if (action.type == ActionType::ReduceScatterRound) {
    const std::size_t bucket = bucket_index(action);
    return {comm::elements_of(memory_.flights[bucket].span<float>()), shard_.buckets()[bucket].counts};
  }
  const bool gathers = schedule::is_gather(action.type);
  const TensorView& flat_N = gathers ? memory_.weights_N : memory_.gradients_N;
  if (schedule::is_of_tied(action.type)) {
    const Bucket& bucket = shard_.tied();
    const std::int64_t count = bucket.elements.end - bucket.elements.begin;
    return {comm::elements_of(flat_N.rows(bucket.elements.begin, count).span<float>()), bucket.counts};
  }
  if (gathers && !memory_.gathered.empty()) return to_gather(action);
  const bool is_packed = wire_.is_used() && !gathers;
  return {is_packed ? wire_.pack(queue_, bucket_of(action)) : elements_of(flat_N, action),
          shard_.bucket(action.first_layer, action.end_layer).counts};
}

PartitionedElements ParameterExchange::to_gather(const Action& gather) const {
  const std::size_t index = bucket_index(gather);
  const Bucket& bucket = shard_.buckets()[index];
  const std::span<const float> own = memory_.weights_N.rows(bucket.begin, bucket.num_own()).span<float>();
  const std::span<float> place = memory_.gathered[index].span<float>();
  std::ranges::copy(own, place.begin() + (bucket.own.begin - bucket.elements.begin));
  return {comm::elements_of(place), bucket.counts};
}

void ParameterExchange::communicated(const Action& action,
                                     std::span<const batch::MicroBatch> own_micro_batches) {
  if (action.type == ActionType::ReduceScatterRound) return add_round(action);
  if (action.type == ActionType::GatherTiedRows) return tied_rows_->lay_out(own_micro_batches);
  if (wire_.is_used()) unpack(action);
  if (!queue_ || action.type != ActionType::GatherParameters) return;
  // Layer norms read weights as the optimizer keeps them, products read them rounded.
  const auto [begin, end] = table_.elements_of_layers(action.first_layer, action.end_layer);
  kernels::round_to_compute(*queue_, {.x_N = memory_.weights_N.rows(begin, end - begin),
                                      .y_N = memory_.compute_weights_N.rows(begin, end - begin)});
}

void ParameterExchange::unpack(const Action& action) const {
  if (action.type == ActionType::ReduceGradient) {
    wire_.unpack(queue_, 0, bucket_of(action));
  } else if (action.type == ActionType::ReduceScatterGradient) {
    const Bucket& bucket = shard_.bucket(action.first_layer, action.end_layer);
    wire_.unpack(queue_, bucket.own.begin - bucket.elements.begin,
                 memory_.gradients_N.rows(bucket.own.begin, bucket.num_own()));
  }
}

void ParameterExchange::add_round(const Action& action) const {
  base::check(!queue_, "on a GPU, which keeps all gradients, no rounds are reduced");
  const std::size_t index = bucket_index(action);
  const Bucket& bucket = shard_.buckets()[index];
  const std::span<const float> round =
      memory_.flights[index].rows(bucket.own.begin - bucket.elements.begin, bucket.num_own()).span<float>();
  const std::span<float> sum = memory_.gradients_N.rows(bucket.begin, bucket.num_own()).span<float>();
  // Between tensors lies what other buckets left there.
  for (const describe::Parameter& parameter : table_.parameters()) {
    const std::int64_t begin = std::max(parameter.begin, bucket.own.begin);
    const std::int64_t end = std::min(parameter.end(), bucket.own.end);
    if (begin >= end) continue;
    const auto first = static_cast<std::size_t>(begin - bucket.own.begin);
    const auto count = static_cast<std::size_t>(end - begin);
    const std::span<const float> from = round.subspan(first, count);
    const std::span<float> to = sum.subspan(first, count);
    if (action.micro_batch.value == 0) {
      std::ranges::copy(from, to.begin());
    } else {
      std::ranges::transform(from, to, to.begin(), std::plus<>());
    }
  }
}

TensorView ParameterExchange::tied_gradient_VD() const {
  const describe::Parameter& words = *table_.tied();
  return {memory_.gradients_N.rows(words.begin, words.num_elements()).raw(), tensor::DType::Float32,
          words.shape};
}

TiedRows::WordRange ParameterExchange::own_words() const {
  const describe::Parameter& words = *table_.tied();
  if (shard_.is_whole()) return {0, words.shape[0]};
  const std::int64_t width = words.shape[1];
  const describe::ParameterTable::ElementRange& own = shard_.tied().own;
  return {(own.begin - words.begin) / width,
          std::min((own.end - words.begin + width - 1) / width, words.shape[0])};
}

void ParameterExchange::join_halves(const tensor::Stream& stream) const {
  if (tied_rows_) tied_rows_->add_to(stream, tied_gradient_VD(), own_words());
}

}  // namespace plenum::pipeline
