#include "plenum/pipeline/parameter_exchange.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "plenum/base/check.h"
#include "plenum/kernels/convert.h"
#include "plenum/tensor/bfloat16.h"
#include "plenum/tensor/copy.h"
#include "plenum/tensor/cuda_stream.h"

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;
using tensor::TensorView;

namespace {

comm::Elements all_of(const TensorView& view) {
  return {{static_cast<std::byte*>(view.raw()), view.num_bytes()}, view.dtype()};
}

}  // namespace

ParameterExchange::ParameterExchange(const describe::ParameterTable& table,
                                     const describe::ParameterShard& shard, const memory::Holder& holder,
                                     const memory::RankMemory& memory, std::optional<tensor::Stream> queue)
    : table_(table), shard_(shard), memory_(memory), queue_(queue), wire_(memory.wire_B), norms_(table) {
  if (memory.tied_rows_RD) tied_rows_.emplace(*table.tied(), memory.tied_rows_RD, holder.index, holder.count);
  if (!memory.exact_norms_E) return;
  for (const Bucket& bucket : shard.buckets()) {
    std::vector<std::size_t>& counts = norm_counts_.emplace_back();
    std::int64_t begin = bucket.elements.begin;
    for (const std::size_t count : bucket.counts) {
      const std::int64_t end = begin + static_cast<std::int64_t>(count);
      counts.push_back(static_cast<std::size_t>(norms_.count_within({begin, end})));
      begin = end;
    }
  }
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
  const TensorView& place = memory_.gathered[index];
  const TensorView own = memory_.weights_N.rows(bucket.begin, bucket.num_own());
  const TensorView part = place.rows(bucket.own.begin - bucket.elements.begin, bucket.num_own());
  if (queue_) {
    kernels::round_to_compute(*queue_, {.x_N = own, .y_N = part});
  } else {
    std::ranges::copy(own.span<float>(), part.span<float>().begin());
  }
  return {all_of(place), bucket.counts};
}

/// Layer norms read weights as the optimizer keeps them, products read them rounded.
PartitionedElements ParameterExchange::to_gather_besides(const Action& action) const {
  // What is gathered for the backward or for another micro-batch is what was gathered for the first forward.
  const bool is_first_of_step = action.type == ActionType::GatherParameters ||
                                (action.type == ActionType::GatherForward && action.micro_batch.value == 0);
  if (norm_counts_.empty() || !is_first_of_step) return {};
  const std::size_t index = bucket_index(action);
  const Bucket& bucket = shard_.buckets()[index];
  for (const auto& [elements, begin] : norms_.within(bucket.own)) {
    const std::int64_t count = elements.end - elements.begin;
    tensor::copy(*queue_, memory_.weights_N.rows(bucket.begin + elements.begin - bucket.own.begin, count),
                 memory_.exact_norms_E.rows(begin, count));
  }
  const std::vector<describe::NormElements::Run> of_bucket = norms_.within(bucket.elements);
  const std::int64_t begin = of_bucket.empty() ? 0 : of_bucket.front().begin;
  return {all_of(memory_.exact_norms_E.rows(begin, norms_.count_within(bucket.elements))),
          norm_counts_[index]};
}

void ParameterExchange::put_weights(const tensor::Stream& stream, const model::FlatPiece& piece) const {
  const auto count = static_cast<std::int64_t>(piece.values.size());
  std::vector<tensor::BFloat16> rounded(piece.values.size());
  std::ranges::transform(piece.values, rounded.begin(), tensor::to_bfloat16);
  tensor::copy(stream, tensor::ConstTensorView(rounded.data(), {count}),
               memory_.compute_weights_N.rows(piece.begin, count));
  for (const auto& [elements, begin] : norms_.within({piece.begin, piece.begin + count})) {
    const tensor::Shape shape{elements.end - elements.begin};
    tensor::copy(stream, tensor::ConstTensorView(piece.values.data() + (elements.begin - piece.begin), shape),
                 memory_.exact_norms_E.rows(begin, shape[0]));
  }
  stream.wait();  // what is copied goes
}

void ParameterExchange::communicated(const Action& action,
                                     std::span<const batch::MicroBatch> own_micro_batches) {
  if (action.type == ActionType::ReduceScatterRound) return add_round(action);
  if (action.type == ActionType::GatherTiedRows) return tied_rows_->lay_out(own_micro_batches);
  if (wire_.is_used()) unpack(action);
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
  const std::size_t index = bucket_index(action);
  const Bucket& bucket = shard_.buckets()[index];
  const std::int64_t first = bucket.own.begin - bucket.elements.begin;
  // Between tensors lies what other buckets left there.
  for (const auto& [begin, end] : tensors_within(bucket.own)) {
    const std::int64_t offset = begin - bucket.own.begin;
    const TensorView round = memory_.flights[index].rows(first + offset, end - begin);
    const TensorView sum = memory_.gradients_N.rows(bucket.begin + offset, end - begin);
    if (action.micro_batch.value == 0) {
      copy(round, sum);
    } else {
      add(round, sum);
    }
  }
}

void ParameterExchange::copy(const TensorView& from, const TensorView& to) const {
  if (queue_) return tensor::copy(*queue_, from, to);
  std::ranges::copy(from.span<float>(), to.span<float>().begin());
}

void ParameterExchange::add(const TensorView& addend, const TensorView& sum) const {
  if (!queue_) {
    std::ranges::transform(addend.span<float>(), sum.span<float>(), sum.span<float>().begin(), std::plus<>());
    return;
  }
  const std::array<const std::byte*, 2> sources = {static_cast<const std::byte*>(sum.raw()),
                                                   static_cast<const std::byte*>(addend.raw())};
  const std::array<std::byte*, 1> destination = {static_cast<std::byte*>(sum.raw())};
  queue_->cuda().sum(sources, destination, static_cast<std::size_t>(sum.num_elements()), sum.dtype());
}

std::vector<describe::ParameterTable::ElementRange> ParameterExchange::tensors_within(
    const describe::ParameterTable::ElementRange& range) const {
  std::vector<describe::ParameterTable::ElementRange> found;
  for (const describe::Parameter& parameter : table_.parameters()) {
    const std::int64_t begin = std::max(parameter.begin, range.begin);
    const std::int64_t end = std::min(parameter.end(), range.end);
    if (begin >= end) continue;
    if (!found.empty() && found.back().end == begin) {
      found.back().end = end;
    } else {
      found.push_back({begin, end});
    }
  }
  return found;
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
