#include "plenum/pipeline/tied_rows.h"

#include <algorithm>
#include <bit>

#include "plenum/base/check.h"
#include "plenum/kernels/rows.h"

namespace plenum::pipeline {

TiedRows::TiedRows(const describe::Parameter& words, const tensor::TensorView& room_RD, std::size_t holder,
                   std::size_t num_holders)
    : first_word_(words.slice ? words.slice->begin : 0),
      num_words_(static_cast<std::size_t>(words.shape[0])),
      room_RD_(room_RD),
      holder_(holder),
      counts_(num_holders, (num_words_ + kBits - 1) / kBits),
      marks_(num_holders * num_marks()),
      row_of_word_(num_words_) {
  words_.reserve(static_cast<std::size_t>(room_RD.size(0)));
}

PartitionedElements TiedRows::mark(std::span<const batch::MicroBatch> micro_batches) {
  const std::span<std::int32_t> own = std::span(marks_).subspan(holder_ * num_marks(), num_marks());
  std::ranges::fill(own, 0);
  for (const batch::MicroBatch& micro_batch : micro_batches) {
    for (const std::int32_t word : micro_batch.by_word.entries) {
      const std::size_t place = place_of(word);
      if (place < num_words_) own[place / kBits] |= std::int32_t{1} << place % kBits;
    }
  }
  return {comm::elements_of(std::span(marks_)), counts_};
}

void TiedRows::lay_out(std::span<const batch::MicroBatch> micro_batches) {
  words_.clear();
  for (std::size_t i = 0; i < num_marks(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t holder = 0; holder < counts_.size(); ++holder) {
      bits |= static_cast<std::uint32_t>(marks_[holder * num_marks() + i]);
    }
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t place = i * kBits + static_cast<std::size_t>(std::countr_zero(bits));
      row_of_word_[place] = static_cast<std::int32_t>(words_.size());
      words_.push_back(static_cast<std::int32_t>(place));
    }
  }
  base::check(num_rows() <= room_RD_.size(0), "a step reads more words than there is room for: {} of {}",
              num_rows(), room_RD_.size(0));
  std::ranges::fill(rows_RD().span<float>(), 0.0F);
  entries_.resize(micro_batches.size());
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    const std::vector<std::int32_t>& read = micro_batches[i].by_word.entries;
    entries_[i].resize(read.size());
    std::ranges::transform(read, entries_[i].begin(), [&](std::int32_t word) {
      const std::size_t place = place_of(word);
      return place < num_words_ ? row_of_word_[place] : static_cast<std::int32_t>(num_rows());
    });
  }
}

kernels::RowGroups TiedRows::by_row(std::size_t micro_batch, kernels::RowGroups by_word) const {
  if (by_word.num_groups() == 0) return by_word;
  const std::vector<std::int32_t>& entries = entries_[micro_batch];
  by_word.entry_G = {entries.data(), {static_cast<std::int64_t>(entries.size())}};
  return by_word;
}

void TiedRows::add_to(const tensor::Stream& stream, const tensor::TensorView& dword_VD,
                      const WordRange& of) const {
  const auto row_at = [&](std::int64_t word) {
    return std::ranges::lower_bound(words_, word) - words_.begin();
  };
  const std::int64_t first = row_at(of.begin);
  const std::int64_t count = row_at(of.end) - first;
  if (count <= 0) return;
  kernels::gather_rows_backward(
      stream,
      {.dy_MD = room_RD_.rows(first, count), .index_M = {words_.data() + first, {count}}, .dx_TD = dword_VD});
}

}  // namespace plenum::pipeline
