#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "plenum/batch/micro_batch.h"
#include "plenum/describe/norm_elements.h"
#include "plenum/describe/parameter_shard.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/memory/rank_memory.h"
#include "plenum/memory/schedule_shard.h"
#include "plenum/model/flat_pieces.h"
#include "plenum/pipeline/gradient_wire.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/pipeline/tied_rows.h"
#include "plenum/tensor/stream.h"

namespace plenum::pipeline {

/// What the ranks that hold a stage exchange of its gradients and weights, and where it lies: whole buckets,
/// shards of them, rounds, and a word table that is tied, or its halves.
class ParameterExchange {
 public:
  /// Borrows all of it. `queue`: where the work of the data-parallel lane goes, if that is a device.
  ParameterExchange(const describe::ParameterTable& table, const describe::ParameterShard& shard,
                    const memory::Holder& holder, const memory::RankMemory& memory,
                    std::optional<tensor::Stream> queue);

  /// As StageProgram says. Of the rank's micro-batches of the step only the words are read.
  comm::Elements to_reduce(const schedule::Action& action) const;
  PartitionedElements to_partition(const schedule::Action& action,
                                   std::span<const batch::MicroBatch> own_micro_batches);
  PartitionedElements to_gather_besides(const schedule::Action& action) const;
  void communicated(const schedule::Action& action, std::span<const batch::MicroBatch> own_micro_batches);

  /// Overwrites, in the order of a stream, a piece of the weights that passes read through steps, where the
  /// optimizer has a shard of them.
  void put_weights(const tensor::Stream& stream, const model::FlatPiece& piece) const;

  /// The gradient of the tied word table; where its halves are summed by themselves the head's, until the
  /// rows of the other are added.
  tensor::TensorView tied_gradient_VD() const;
  /// Null where a word table is summed as everything else.
  const TiedRows* tied_rows() const { return tied_rows_ ? &*tied_rows_ : nullptr; }
  /// Puts the halves of the word table together, when both are summed.
  void join_halves(const tensor::Stream& stream) const;

 private:
  using Bucket = describe::ParameterShard::Bucket;

  /// Of a flat Float32 buffer, those of the action's layers.
  comm::Elements elements_of(const tensor::TensorView& flat_N, const schedule::Action& action) const;
  /// The gradient of the layers that an action names.
  tensor::TensorView bucket_of(const schedule::Action& action) const;
  std::size_t bucket_index(const schedule::Action& action) const;
  /// The place of a bucket, with the rank's own part in it.
  PartitionedElements to_gather(const schedule::Action& gather) const;
  /// Of a bucket that was reduced in fewer bytes, what this rank has now.
  void unpack(const schedule::Action& action) const;
  /// Adds a reduced micro-batch to the shard's gradient.
  void add_round(const schedule::Action& action) const;
  /// Float32, in the order of the queue if there is one; else by the thread that communicates.
  void copy(const tensor::TensorView& from, const tensor::TensorView& to) const;
  void add(const tensor::TensorView& addend, const tensor::TensorView& sum) const;
  /// The tensors within a part of the flat buffers, as one where they follow each other without a gap.
  std::vector<describe::ParameterTable::ElementRange> tensors_within(
      const describe::ParameterTable::ElementRange& range) const;
  /// The elements of an action's layers, without a tied word table that is summed by itself.
  describe::ParameterTable::ElementRange range_of(const schedule::Action& action) const;
  /// The rows of the table of which the rank updates something.
  TiedRows::WordRange own_words() const;

  const describe::ParameterTable& table_;
  const describe::ParameterShard& shard_;
  const memory::RankMemory& memory_;
  std::optional<tensor::Stream> queue_;
  GradientWire wire_;
  std::optional<TiedRows> tied_rows_;
  describe::NormElements norms_;
  /// Where norms are gathered besides: of each bucket, how many elements of theirs each holder's part has.
  std::vector<std::vector<std::size_t>> norm_counts_;
};

}  // namespace plenum::pipeline
