#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plenum/batch/micro_batch.h"
#include "plenum/describe/parameter_table.h"
#include "plenum/kernels/embedding.h"
#include "plenum/pipeline/stage_program.h"
#include "plenum/tensor/stream.h"
#include "plenum/tensor/tensor_view.h"

namespace plenum::pipeline {

/// The embedding's half of the gradient of a word table that a head shares, where ranks sum the two halves by
/// themselves (schedule::Problem::has_tied_halves): a row for each word that some rank reads in the step, the
/// same words in the same rows on all of them.
///
/// In a step: every rank marks its words, all gather the marks and lay the rows out by them, backward adds to
/// the rows, their sum over the ranks is added to the head's half. On the CPU.
class TiedRows {
 public:
  /// Of the word table of a rank that is `holder` of `num_holders`. `room_RD` has a row for every word that a
  /// step may read.
  TiedRows(const describe::Parameter& words, const tensor::TensorView& room_RD, std::size_t holder,
           std::size_t num_holders);

  /// Marks the words of a rank's micro-batches, for all ranks to gather.
  PartitionedElements mark(std::span<const batch::MicroBatch> micro_batches);
  /// Rows of zeros for the words that are marked.
  void lay_out(std::span<const batch::MicroBatch> micro_batches);

  /// The gradient, of as many rows as were laid out.
  tensor::TensorView rows_RD() const { return room_RD_.first_rows(num_rows()); }
  /// The groups of a micro-batch by its words, by rows instead. A word of another slice of the table has the
  /// row behind the last.
  kernels::RowGroups by_row(std::size_t micro_batch, kernels::RowGroups by_word) const;

  /// Words of the table's slice, by their places in it.
  struct WordRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  /// Adds the rows of some words to theirs in the table's gradient.
  void add_to(const tensor::Stream& stream, const tensor::TensorView& dword_VD, const WordRange& of) const;

 private:
  static constexpr std::size_t kBits = 32;

  std::int64_t num_rows() const { return static_cast<std::int64_t>(words_.size()); }
  /// Of marks of each rank.
  std::size_t num_marks() const { return counts_.front(); }
  /// Where a word lies in the table's slice; beyond it if it does not.
  std::size_t place_of(std::int32_t word) const { return static_cast<std::size_t>(word - first_word_); }

  std::int64_t first_word_ = 0;
  std::size_t num_words_ = 0;  ///< of the slice
  tensor::TensorView room_RD_;
  std::size_t holder_;
  std::vector<std::size_t> counts_;                 ///< of marks, by holder
  std::vector<std::int32_t> marks_;                 ///< a bit for each word of the slice, by holder
  std::vector<std::int32_t> row_of_word_;           ///< of those that are marked
  std::vector<std::int32_t> words_;                 ///< of each row, by its place in the slice
  std::vector<std::vector<std::int32_t>> entries_;  ///< of each micro-batch: the rows of its words
};

}  // namespace plenum::pipeline
